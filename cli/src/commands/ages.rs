//! What `koel info` says about a state that forgets: its window, and what it will forget when.

use crate::state::seen::Seen;
use crate::state::window::Seconds;
use indicatif::HumanCount;
use koel::Stats;
use koel_state::window::{self, Window};
use serde::Serialize;

/// The field names are those of the JSON.
#[derive(Serialize)]
pub struct Ages {
    /// The ticks for which an item is remembered at least.
    ticks: u32,
    /// The same in seconds, and the length of a tick. Not known if another program counts the ticks.
    seconds: Option<u64>,
    tick_seconds: Option<u64>,
    /// The items that go with each of the next ticks.
    expiring: Vec<Expiring>,
    #[serde(skip)]
    window: Option<Window>,
}

#[derive(Serialize)]
struct Expiring {
    items: usize,
    /// When they go, in seconds from now.
    in_seconds: Option<u64>,
}

/// Lets the ticks pass that are due, and returns the filter's figures and its ages, if it forgets.
pub fn of(filter: &Seen) -> (Stats, Option<Ages>) {
    let window = window::keep_up(filter);
    let (now, tick) = (window::now(), filter.present_tick());
    let ages = filter.remembers().map(|ticks| Ages {
        ticks,
        seconds: window.map(Window::seconds),
        tick_seconds: window.map(Window::tick_seconds),
        expiring: (1..)
            .zip(filter.expiring())
            .map(|(after, items)| Expiring {
                items,
                in_seconds: window
                    .zip(tick)
                    .map(|(window, tick)| window.began(tick + after).saturating_sub(now)),
            })
            .collect(),
        window,
    });
    (filter.stats(), ages)
}

impl Ages {
    /// Returns what is said of them, by names.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![match self.window {
            Some(window) => {
                let later = Seconds(window.tick_seconds());
                ("forgets", format!("lines after {window}, or up to {later} later"))
            }
            None => ("forgets", format!("items after {} ticks of another program", self.ticks)),
        }];
        let some = (1..).zip(&self.expiring).filter(|(_, expiring)| expiring.items > 0);
        for (ticks, Expiring { items, in_seconds }) in some {
            let name = if rows.len() == 1 { "will go" } else { "" };
            let when = match in_seconds {
                Some(seconds) => format!("in {}", Seconds(*seconds)),
                None => format!("with tick {ticks} from now"),
            };
            rows.push((name, format!("{} {when}", HumanCount(*items as u64))));
        }
        rows
    }
}
