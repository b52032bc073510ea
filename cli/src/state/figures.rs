//! What a filter is at the end of a run.

/// What a state is, for the summary.
pub struct Figures {
    /// `None` if the state is damaged, where no line led to it.
    pub rate: Option<f64>,
    /// The rate that it was planned to have at most.
    pub planned_rate: f64,
    /// The number of lines that it was planned for.
    pub planned_items: f64,
    pub items: usize,
    pub bytes: usize,
}

impl Figures {
    pub fn of(stats: &koel::Stats) -> Self {
        Figures {
            rate: Some(stats.false_positive_rate),
            planned_rate: stats.false_positive_rate_at_capacity,
            planned_items: stats.capacity as f64 * stats.expected_growth,
            items: stats.items,
            bytes: stats.size_in_bytes,
        }
    }
}
