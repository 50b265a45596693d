//! Asking for memory before it is read.
//!
//! A table of many keys is far larger than the caches, and a look-up in it waits for memory once or twice. Who
//! knows the next look-ups can ask for their memory now, so that many waits are one.
#![allow(unsafe_code)]

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
