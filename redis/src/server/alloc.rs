//! The allocator of the module: the server's own, so that the server accounts for every byte.
//!
//! Zeroed memory is asked for as such, so a table of gigabytes takes no time to make and no pages until they are
//! written. Large blocks can be refused, where the server has a way to refuse. And any alignment is kept, whichever
//! allocator the server was built with.

use crate::server::raw;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::null_mut;

/// The allocator of this server.
pub struct ServerAllocator;

/// Every allocator of a server aligns a block to this, if its size is a multiple of it.
const ALIGNED: usize = 16;

/// Of blocks from this size on, the server is asked whether it has them. It aborts if it lacks a smaller one,
/// as it does for its own.
const LARGE: usize = 1 << 16;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

// SAFETY: blocks are those of the server's allocator, which are aligned to 8 bytes, and to 16 if their size is a
// multiple of that. If more is asked for, the
// block is larger by the alignment, begins at the next multiple of it, and has the address of the
// server's block right before it: there is room, since at least 8 bytes were skipped. The layout
// tells `dealloc` which of both was done.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { aligned(layout, plain(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { aligned(layout, zeroed(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` with this layout, so the address is before it.
        let block = match layout.align() > ALIGNED {
            true => unsafe { block.cast::<*mut u8>().sub(1).read() },
            false => block,
        };
        // SAFETY: it is a block of the server.
        if let Some(free) = unsafe { raw::RedisModule_Free } {
            unsafe { free(block.cast()) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: blocks of usual alignment are the server's own. Others are copied.
        unsafe {
            if layout.align() <= ALIGNED
                && let Some(realloc) = raw::RedisModule_Realloc
            {
                return realloc(block.cast(), rounded(size, layout.align())).cast();
            }
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

/// The bytes of the server's block for a block of this layout.
fn bytes(layout: Layout) -> usize {
    match layout.align() > ALIGNED {
        true => layout.size().saturating_add(layout.align()),
        false => rounded(layout.size(), layout.align()),
    }
}

/// Rounds a size up to a multiple of its alignment. An allocator aligns a block of 24 bytes to 8, maybe, but one of
/// 32 to 16.
fn rounded(size: usize, align: usize) -> usize {
    size.checked_next_multiple_of(align).unwrap_or(size)
}

unsafe fn plain(layout: Layout) -> *mut c_void {
    let bytes = bytes(layout);
    // SAFETY: the functions of the server are there from its first call of the module on.
    unsafe {
        let large = raw::RedisModule_TryAlloc.filter(|_| bytes >= LARGE);
        large.or(raw::RedisModule_Alloc).map_or(null_mut(), |alloc| alloc(bytes))
    }
}

unsafe fn zeroed(layout: Layout) -> *mut c_void {
    let bytes = bytes(layout);
    // SAFETY: as above.
    unsafe {
        let large = raw::RedisModule_TryCalloc.filter(|_| bytes >= LARGE);
        large.or(raw::RedisModule_Calloc).map_or(null_mut(), |alloc| alloc(1, bytes))
    }
}

/// Begins at a multiple of the layout's alignment.
unsafe fn aligned(layout: Layout, block: *mut c_void) -> *mut u8 {
    let block: *mut u8 = block.cast();
    if layout.align() <= ALIGNED || block.is_null() {
        return block;
    }
    // SAFETY: the block is larger by the alignment than what is asked for.
    unsafe {
        let at = block.add(layout.align() - block.addr() % layout.align());
        at.cast::<*mut u8>().sub(1).write(block);
        at
    }
}
