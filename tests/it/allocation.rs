//! After the first lines, keys are made without allocating.

#![allow(unsafe_code, reason = "an allocator that counts is the only way to see allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use firstseen::{Keyer, Protocol};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations for the second half of `lines`, by one keyer.
fn allocations(lines: &[String]) -> usize {
    let mut keyer = Keyer::new(&Protocol::built_in("geojson-v1").unwrap());
    let (first, rest) = lines.split_at(lines.len() / 2);
    let mut keys = |lines: &[String]| assert!(lines.iter().all(|line| keyer.key(line.as_bytes()).is_ok()));
    keys(first);
    let before = ALLOCATIONS.get();
    keys(rest);
    ALLOCATIONS.get() - before
}

#[test]
fn lines_of_a_known_shape_allocate_nothing() {
    let line = |id: u32| {
        format!("{{\"b\":[{}.5,\"x\"],\"a\":{{\"id\":{id},\"drift\":0.1000000000000{id}}}}}", id % 90)
    };
    assert_eq!(allocations(&(1000..3000).map(line).collect::<Vec<_>>()), 0);
}

#[test]
fn lines_that_are_parsed_allocate_nothing_but_to_learn_from_a_few() {
    // Each has another name, and with it another shape: so many are parsed that learning rests.
    let line = |id: u32| {
        format!("{{\"n{}\":[{id}.5,\"\\u00e9\"],\"a\":{{\"id\":{id},\"x\":[1e-7,null]}}}}", id % 7919)
    };
    let lines: Vec<_> = (10_000..30_000).map(line).collect();
    let learned = allocations(&lines);
    assert!(learned < 1000, "{learned} allocations for 10,000 lines");
    let exact =
        |id: u32| format!("{{\"n\":NaN,\"big\":123456789012345678901234567890,\"id\":{id},\"e\":\"\\n\"}}");
    let learned = allocations(&(10_000..30_000).map(exact).collect::<Vec<_>>());
    assert!(learned < 1000, "{learned} allocations for 10,000 lines");
}
