//! Hints to the machine: what will be needed soon. A program without them does the same, and waits for longer.
//!
//! A table of many keys is far larger than the caches, and a look-up in it waits for memory once or twice. Who
//! knows the next look-ups can ask for their memory now, so that many waits are one. In the same way, what was
//! written can go to the disk while more is computed.
#![allow(unsafe_code)]

use std::fs::File;

/// Asks for the cache line at an address, which need not be one of this process: nothing is read, and a wrong
/// address costs time only.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint. It never faults, and never changes what the program computes.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above. The instruction reads one register, and writes none, nor memory, nor flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Begins to bring a part of a file to disk, and does not wait for it. Whether that went well is for the file's
/// `fsync` to say: this neither reports nor forgets what went wrong.
#[cfg(target_os = "linux")]
pub(crate) fn start_write_back(file: &File, offset: u64, length: u64) {
    use std::os::fd::AsRawFd;

    let (offset, length) = (offset as libc::off64_t, length as libc::off64_t);
    // SAFETY: the descriptor is open as long as the file is borrowed, and no memory is handed over.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Other systems begin when they see fit.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_write_back(_: &File, _: u64, _: u64) {}
