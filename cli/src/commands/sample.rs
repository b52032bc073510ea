//! `koel sample`: writes a synthetic crawl.

use crate::failure::{Failure, Trouble};
use crate::lines::crawl::Crawl;
use crate::lines::output::Sink;
use std::io::Read;

/// Writes a crawl to standard output.
pub fn write(lines: u64) -> Result<(), Failure> {
    let mut crawl = Crawl::new(lines);
    let mut output = Sink::standard()?;
    let mut text = vec![0; 1 << 16];
    loop {
        match crawl.read(&mut text) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => match output.write(&text[..length]) {
                Ok(()) => {}
                Err(Trouble::Failed(failure)) => return Err(failure),
                Err(_) => return Ok(()),
            },
        }
    }
}
