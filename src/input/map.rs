//! The map: the one place with `unsafe`, and the reasons why it is sound.
//!
//! A mapped file has two dangers. Another process may write to it: then bytes change under a
//! `&[u8]`. And another process may shorten it: then touching a page past the new end raises
//! `SIGBUS`, and the part of the last page past the end reads as zeros.
//!
//! Nothing here relies on the bytes keeping their value: a line is copied before it is parsed, the
//! copy is what its key is of, and what is written afterwards is opaque. For shortened files there
//! is a handler of `SIGBUS`. It looks for the address among the maps of this process, puts zero
//! pages in place of the rest of that map, marks the map, and returns, so that the interrupted
//! read goes on. Whoever uses the bytes asks [`MappedRange::shrunk`] after each use, and ends the
//! run: temporaries are removed and nothing is published, as with any other error.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::{Deref, Range};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

/// A file mapped for reading.
pub(super) struct Mapped {
    map: Mmap,
    file: File,
    slot: &'static Slot,
}

impl Mapped {
    /// Maps the first `len` bytes. `None` where the file is to be read instead: it cannot be
    /// mapped, or too many maps are open for the handler to know this one.
    pub(super) fn new(file: Option<File>, len: u64) -> Option<Arc<Self>> {
        install_handler();
        let (file, len) = (file?, usize::try_from(len).ok()?);
        let slot = Slot::take()?;
        // SAFETY: the map is read-only and private to this struct, which hands out slices only.
        // That the file may change or shrink meanwhile is what the module's text is about.
        match unsafe { MmapOptions::new().len(len).map(&file) } {
            Ok(map) => {
                slot.cover(&map);
                // Advice that fails costs speed, nothing else.
                let _ = map.advise(memmap2::Advice::Sequential);
                Some(Arc::new(Self { map, file, slot }))
            }
            Err(_) => {
                slot.release();
                None
            }
        }
    }

    pub(super) fn range(self: &Arc<Self>, range: Range<usize>) -> MappedRange {
        MappedRange { mapped: Arc::clone(self), range }
    }

    fn shrunk(&self) -> bool {
        let shorter = |metadata: std::fs::Metadata| metadata.len() < self.map.len() as u64;
        self.slot.shrunk.load(Ordering::Acquire) || self.file.metadata().map_or(true, shorter)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Before the map itself goes: its addresses may be another's soon.
        self.slot.release();
    }
}

/// A part of a mapped file. When it is dropped, the memory behind it is given back.
pub(crate) struct MappedRange {
    mapped: Arc<Mapped>,
    range: Range<usize>,
}

impl MappedRange {
    pub(super) fn shrunk(&self) -> bool {
        self.mapped.shrunk()
    }
}

impl Deref for MappedRange {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.mapped.map[self.range.clone()]
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        let page = page_size();
        let start = self.range.start.next_multiple_of(page);
        let end = if self.range.end == self.mapped.map.len() {
            self.range.end.next_multiple_of(page)
        } else {
            self.range.end / page * page
        };
        if start < end {
            // SAFETY: pages of a read-only map hold what the file holds; given
            // back, they are read from the file again by whoever still looks at them.
            let _ = unsafe {
                self.mapped.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }
}

/// The most maps at a time. More are read instead.
const SLOTS: usize = 64;

/// Where one map is, for the handler. All of it is atomic, as a handler may take no lock.
struct Slot {
    /// Null when free, `RESERVED` between.
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    shrunk: AtomicBool,
}

static MAPS: [Slot; SLOTS] = [const {
    Slot { start: AtomicPtr::new(ptr::null_mut()), len: AtomicUsize::new(0), shrunk: AtomicBool::new(false) }
}; SLOTS];

static PAGE_SIZE: AtomicUsize = AtomicUsize::new(4096);

impl Slot {
    /// An address that is in no map.
    const RESERVED: *mut u8 = ptr::without_provenance_mut(1);

    fn take() -> Option<&'static Self> {
        let free = |slot: &&Self| {
            slot.start
                .compare_exchange(ptr::null_mut(), Self::RESERVED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let slot = MAPS.iter().find(free)?;
        slot.len.store(0, Ordering::Release);
        slot.shrunk.store(false, Ordering::Release);
        Some(slot)
    }

    fn cover(&self, map: &Mmap) {
        self.len.store(map.len(), Ordering::Release);
        self.start.store(map.as_ptr().cast_mut(), Ordering::Release);
    }

    fn release(&self) {
        self.len.store(0, Ordering::Release);
        self.start.store(ptr::null_mut(), Ordering::Release);
    }
}

fn page_size() -> usize {
    PAGE_SIZE.load(Ordering::Relaxed)
}

/// What handled `SIGBUS` before, as a pointer that is never freed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `sysconf` and `sigaction` are called with valid arguments; a `sigaction` of
        // zeros is a valid value of that type. The handler does only what a handler may: it reads
        // and writes atomics, and calls `mmap`, `sigaction` and `raise`, which are system calls and
        // nothing else on the systems this builds for.
        unsafe {
            if let Ok(page) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
                PAGE_SIZE.store(page, Ordering::Relaxed);
            }
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) != 0 {
                return;
            }
            PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

extern "C" fn on_sigbus(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system calls this with a valid `info`, as `SA_SIGINFO` asks it to.
    let (sent, address) = unsafe { ((*info).si_code <= 0, (*info).si_addr() as usize) };
    for slot in &MAPS {
        let start = slot.start.load(Ordering::Acquire) as usize;
        let end = start + slot.len.load(Ordering::Acquire);
        // The slot may have changed hands between the two; a map that is read does not.
        let is_whole = slot.start.load(Ordering::Acquire) as usize == start;
        if !sent && is_whole && (start..end).contains(&address) {
            let page = address & !(page_size() - 1);
            // SAFETY: the pages from here to the end of the map belong to this map, which stays
            // alive while somebody reads it, as the interrupted thread does. They could not be
            // read any more; from now on they are zeros.
            let replaced = unsafe {
                libc::mmap(
                    page as *mut libc::c_void,
                    end - page,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if replaced != libc::MAP_FAILED {
                return slot.shrunk.store(true, Ordering::Release);
            }
        }
    }
    // Not ours: the previous handler gets it, as the faulting instruction is tried again. A signal
    // that another process sent has to be raised for that.
    let previous = PREVIOUS.load(Ordering::Acquire);
    if !previous.is_null() {
        // SAFETY: the pointer comes from a box that is never freed.
        unsafe { libc::sigaction(libc::SIGBUS, previous, ptr::null_mut()) };
        if sent {
            // SAFETY: `raise` may be called in a handler; the signal comes when this one returns.
            unsafe { libc::raise(libc::SIGBUS) };
        }
    }
}
