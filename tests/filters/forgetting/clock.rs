//! Filters that forget by the system's clock.

use crate::common::bytes_of;
use koel::{Builder, ConcurrentCuckooFilter, Window};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn builders() -> [Builder; 2] {
    let builder = ConcurrentCuckooFilter::builder().capacity(100);
    [builder.clone(), builder.growing()]
}

#[test]
fn an_item_is_forgotten_after_its_time_and_never_earlier() {
    for builder in builders() {
        let time = Duration::from_secs(1);
        let filter = builder.forgets_after(time).build().expect("memory");
        let came = Instant::now();
        filter.insert("an item").expect("room");
        while filter.contains("an item") {
            assert!(came.elapsed() < Duration::from_secs(60), "it stays");
            sleep(Duration::from_millis(20));
            filter.keep_up();
        }
        assert!(came.elapsed() >= time, "forgotten after {:?}", came.elapsed());
    }
}

#[test]
fn an_item_that_comes_after_keep_up_has_its_whole_time_however_old_the_filter_is() {
    let hour = Window::new(Duration::from_secs(3_600));
    for builder in builders() {
        // It was last used 55 minutes ago.
        let filter = builder.remembers(hour.ticks()).build().expect("memory");
        filter.tick_to(hour.number_at(Window::now() - 3_300));
        filter.insert("old").expect("room");
        assert!(filter.keep_up() > 0);
        filter.insert("new").expect("room");
        // Half an hour from now.
        filter.tick_to(hour.number_at(Window::now() + 1_800));
        assert!(filter.contains("new") && !filter.contains("old"));
    }
}

#[test]
fn a_filter_keeps_up_by_the_window_in_its_file() {
    let builder = ConcurrentCuckooFilter::builder().capacity(100);
    let builder = builder.hasher(koel::StableHash::with_seed(1));
    let time = Duration::from_secs(3_600);
    let filter = builder.clone().forgets_after(time).build().expect("memory");
    let window = filter.window().expect("a window");
    assert_eq!(window, Window::new(time));
    assert_eq!(filter.present_tick(), Some(window.number_now()));
    let file = bytes_of(&filter);
    let again = ConcurrentCuckooFilter::<koel::StableHash>::read_from(&file[..]).expect("a filter");
    assert_eq!(again.window(), Some(window));
    // Two hours ago by its clock.
    let filter = builder.clone().remembers(window.ticks()).build().expect("memory");
    filter.tick_to(window.number_at(Window::now() - 7_200));
    filter.insert("an item").expect("room");
    assert!(filter.keep_up() >= 14 && filter.is_empty());
    // Ticks of the program's own do not follow the clock.
    for filter in [builder.clone().remembers(14).build(), builder.build()] {
        let filter = filter.expect("memory");
        filter.tick_to(29_720_000);
        assert_eq!((filter.window(), filter.keep_up()), (None, 0));
    }
}
