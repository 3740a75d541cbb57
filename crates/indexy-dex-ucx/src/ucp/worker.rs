//! Workers: what moves data when it is asked to, and where messages arrive.

use super::{
    context::{Context, Use},
    status::{Result, Status},
};
use indexy_ucx_sys as sys;
use std::{
    cell::RefCell,
    collections::VecDeque,
    ffi::c_void,
    os::fd::{BorrowedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::null_mut,
    rc::Rc,
    sync::Arc,
};

/// Words before a message's own.
pub(crate) const HEADER_WORDS: usize = 6;
pub(crate) type Header = [u64; HEADER_WORDS];
/// Most words of a message.
const MAX_WORDS: usize = indexy_dex::remote::MAX_WORDS;
/// Messages that wait; more are dropped, and their senders' patience ends.
const MAX_WAITING: usize = 4096;
/// The one kind of active message.
pub(super) const MESSAGE_ID: u32 = 1;

/// What came.
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) words: Vec<u64>,
    /// Which endpoint answers it; see [`Endpoint::id`](super::Endpoint::id).
    pub(crate) from: usize,
}

/// What callbacks leave. They run inside of `progress`, on its thread.
#[derive(Default)]
struct Inbox {
    messages: RefCell<VecDeque<Message>>,
}

/// A worker. Not `Send`: see the module.
pub(crate) struct Worker {
    pub(super) raw: sys::ucp_worker_h,
    // Boxed: UCX has its address.
    inbox: Box<Inbox>,
    wakes: Option<RawFd>,
    /// U2.
    _context: Arc<Context>,
}

/// The callback of active messages. `arg`: the worker's inbox.
unsafe extern "C" fn received(
    arg: *mut c_void,
    header: *const c_void,
    header_bytes: usize,
    data: *mut c_void,
    bytes: usize,
    param: *const sys::ucp_am_recv_param_t,
) -> sys::ucs_status_t {
    // U3.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the worker's inbox, which lives until the worker is destroyed (`Drop`).
        let inbox = unsafe { &*arg.cast::<Inbox>() };
        // SAFETY: UCX passes its parameters for the time of the callback.
        let param = unsafe { &*param };
        let is_here = param.recv_attr & u64::from(sys::UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
        let is_sound =
            header_bytes == 8 * HEADER_WORDS && bytes.is_multiple_of(8) && bytes / 8 <= MAX_WORDS;
        let has_room = inbox.messages.borrow().len() < MAX_WAITING;
        // What is not sound is dropped: its sender is none of ours.
        if !is_here || !is_sound || !has_room {
            return;
        }
        let mut message = Message {
            header: [0; HEADER_WORDS],
            words: vec![0; bytes / 8],
            from: 0,
        };
        if param.recv_attr & u64::from(sys::UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 {
            message.from = param.reply_ep.addr();
        }
        // SAFETY: UCX has so many bytes at `header` and `data` for the time of the callback; the
        // targets have as many. Bytes are copied, so nothing needs to be aligned at the source.
        unsafe {
            let to = message.header.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(header.cast::<u8>(), to, header_bytes);
            if bytes > 0 {
                let to = message.words.as_mut_ptr().cast::<u8>();
                std::ptr::copy_nonoverlapping(data.cast::<u8>().cast_const(), to, bytes);
            }
        }
        inbox.messages.borrow_mut().push_back(message);
    }));
    sys::UCS_OK
}

impl Worker {
    pub(crate) fn new(context: Arc<Context>, purpose: Use) -> Result<Rc<Self>> {
        let params = sys::ucp_worker_params_t {
            field_mask: u64::from(sys::UCP_WORKER_PARAM_FIELD_THREAD_MODE),
            thread_mode: sys::UCS_THREAD_MODE_SERIALIZED,
            ..Default::default()
        };
        let mut raw = null_mut();
        // SAFETY: the context is alive; `raw` is a place to write to.
        Status::check(unsafe { sys::ucp_worker_create(context.raw, &params, &mut raw) })?;
        let mut this = Self {
            raw,
            inbox: Box::default(),
            wakes: None,
            _context: context,
        };
        let fields = sys::UCP_AM_HANDLER_PARAM_FIELD_ID
            | sys::UCP_AM_HANDLER_PARAM_FIELD_FLAGS
            | sys::UCP_AM_HANDLER_PARAM_FIELD_CB
            | sys::UCP_AM_HANDLER_PARAM_FIELD_ARG;
        let handler = sys::ucp_am_handler_param_t {
            field_mask: u64::from(fields),
            id: MESSAGE_ID,
            flags: sys::UCP_AM_FLAG_WHOLE_MSG,
            cb: Some(received),
            arg: std::ptr::from_ref::<Inbox>(&this.inbox).cast_mut().cast(),
        };
        // SAFETY: the worker is alive; the inbox lives until after it is destroyed.
        Status::check(unsafe { sys::ucp_worker_set_am_recv_handler(raw, &handler) })?;
        if purpose == Use::Server {
            let mut fd = 0;
            // SAFETY: the worker is alive and its context has wakeups.
            Status::check(unsafe { sys::ucp_worker_get_efd(raw, &mut fd) })?;
            this.wakes = Some(fd);
        }
        Ok(Rc::new(this))
    }

    /// Moves what can be moved; false: there was nothing.
    #[inline]
    pub(crate) fn progress(&self) -> bool {
        // SAFETY: the worker is alive, and one thread at a time has it (not `Send`). Callbacks
        // borrow the inbox for their own time only.
        unsafe { sys::ucp_worker_progress(self.raw) != 0 }
    }

    /// What becomes readable when there is something to do, if nothing is to be done now.
    pub(crate) fn arm(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.wakes?;
        // SAFETY: the worker is alive and has wakeups.
        let armed = unsafe { sys::ucp_worker_arm(self.raw) };
        // SAFETY: the descriptor is the worker's, which outlives the borrow.
        (armed == sys::UCS_OK).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    pub(crate) fn message(&self) -> Option<Message> {
        self.inbox.messages.borrow_mut().pop_front()
    }

    /// How other workers connect to this one.
    pub(crate) fn address(&self) -> Result<Vec<u8>> {
        let (mut address, mut bytes) = (null_mut(), 0);
        // SAFETY: the worker is alive; the others are places to write to.
        Status::check(unsafe { sys::ucp_worker_get_address(self.raw, &mut address, &mut bytes) })?;
        // SAFETY: UCX says that so many bytes are there, until the address is released.
        let copy = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), bytes) }.to_vec();
        // SAFETY: it came from this worker and is not used again.
        unsafe { sys::ucp_worker_release_address(self.raw, address) };
        Ok(copy)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: U2: endpoints hold the worker, so none is left. The inbox is
        // dropped after this.
        unsafe { sys::ucp_worker_destroy(self.raw) };
    }
}
