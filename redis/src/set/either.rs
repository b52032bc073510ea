//! A filter of either kind: of fixed size, or one that grows.

/// Does the same to a filter of either kind.
macro_rules! filter {
    ($any:expr, $filter:ident => $what:expr) => {
        match $any {
            koel::AnyCuckooFilter::Fixed($filter) => $what,
            koel::AnyCuckooFilter::Growing($filter) => $what,
        }
    };
}

pub(super) use filter;
