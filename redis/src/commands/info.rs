//! `CF.INFO`: what there is to know of a set.

use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;

pub struct Info;

impl Command for Info {
    const ABOUT: About = About::slow(c"cf.info", 2, Access::Describe).told(
        c"O(n), where n is the number of segments, of some 2,000 items each",
        c"Tells the figures of a filter",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::needed(call, *name, &key)?;
        let about = set.about();
        let stats = set.stats();
        let buckets = stats.as_ref().map_or(1, |stats| stats.slots / stats.slots_per_bucket.max(1));
        let items = stats.as_ref().map_or(set.len(), |stats| stats.items);
        let present_rate = stats.map_or(0.0, |stats| stats.false_positive_rate);
        // The first eight are those of RedisBloom.
        let figures: [(&[u8], i64); 10] = [
            (b"Size", set.bytes() as i64),
            (b"Number of buckets", buckets as i64),
            (b"Number of filters", 1),
            (b"Number of items inserted", items as i64),
            (b"Number of items deleted", about.deleted as i64),
            (b"Bucket size", about.bucket_size.into()),
            (b"Expansion rate", about.expansion.into()),
            (b"Max iterations", about.max_iterations.into()),
            (b"Capacity", about.capacity as i64),
            (b"Forgets after", about.forget_after as i64),
        ];
        // As text, since numbers are signed in the protocol, and doubles are not in its second version.
        let texts: [(&[u8], String); 3] = [
            (b"Error rate", about.rate.to_string()),
            (b"Present error rate", format!("{:.3e}", present_rate)),
            (b"Seed", about.seed().to_string()),
        ];
        call.reply_map(figures.len() + texts.len());
        for (name, figure) in figures {
            call.reply_bytes(name);
            call.reply_integer(figure);
        }
        for (name, text) in texts {
            call.reply_bytes(name);
            call.reply_bytes(text.as_bytes());
        }
        Ok(())
    }
}
