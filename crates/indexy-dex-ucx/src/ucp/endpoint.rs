//! Endpoints: a connection of a worker to another one, and what is under way on it.

use super::{
    status::{Result, Status},
    worker::{HEADER_WORDS, Header, MESSAGE_ID, Worker},
};
use indexy_ucx_sys as sys;
use std::{
    ffi::c_void,
    mem::{ManuallyDrop, take},
    ptr::null_mut,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicI8, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Looks before another thread may have the processor.
const SPINS: u32 = 2_000;
/// From then on a wait sleeps between looks.
const NAPS_AFTER: Duration = Duration::from_millis(5);
const NAP: Duration = Duration::from_micros(50);

/// The other side's memory, as this endpoint reaches it.
pub(crate) struct Key(sys::ucp_rkey_h);

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: unpacked by `Endpoint::unpack`, and nothing else has it. Its endpoint's worker is
        // alive: keys are kept beside the endpoint that unpacked them.
        unsafe { sys::ucp_rkey_destroy(self.0) };
    }
}

pub(crate) struct Endpoint {
    raw: sys::ucp_ep_h,
    /// The error that ended it. One more count is UCX's (U4).
    broken: Arc<AtomicI8>,
    key: Option<Key>,
    worker: Rc<Worker>,
}

/// The callback of errors. `arg`: the endpoint's flag.
unsafe extern "C" fn broke(arg: *mut c_void, _: sys::ucp_ep_h, status: sys::ucs_status_t) {
    // SAFETY: U4: the flag lives as long as UCX may call this. Nothing here panics (U3).
    unsafe { &*arg.cast::<AtomicI8>() }.store(status, Relaxed);
}

/// A verb under way, with the memory that UCX reads or writes (U1).
pub(crate) struct Pending {
    request: Option<sys::ucs_status_ptr_t>,
    buffer: ManuallyDrop<Vec<u64>>,
    worker: Rc<Worker>,
}

impl Pending {
    /// Whether UCX is done; its result if so.
    fn look(&self) -> Option<Result<()>> {
        let Some(request) = self.request else {
            return Some(Ok(()));
        };
        // SAFETY: a request of this worker that was not freed.
        match unsafe { sys::ucp_request_check_status(request) } {
            sys::UCS_INPROGRESS => None,
            status => Some(Status::check(status)),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.look().is_some()
    }

    /// Waits, at most until `limit` passed; returns the buffer.
    pub(crate) fn wait(mut self, limit: Duration) -> Result<Vec<u64>> {
        let worker = self.worker.clone();
        let done = wait_for(&worker, limit, || self.look()).unwrap_or(Err(Status::LATE));
        done.map(|()| take(&mut *self.buffer))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let is_done = self.is_done();
        if let Some(request) = self.request {
            // SAFETY: not freed before; UCX keeps it for itself as long as it needs it.
            unsafe { sys::ucp_request_free(request) };
        }
        if is_done {
            // SAFETY: not dropped before; UCX is done with it.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

/// Moves the worker until `look` finds something; `None`: `limit` passed.
pub(crate) fn wait_for<T>(
    worker: &Worker,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut started = None;
    for spins in 0_u32.. {
        if let Some(found) = look() {
            return Some(found);
        }
        if worker.progress() || spins % SPINS != 0 {
            continue;
        }
        let waited = started.get_or_insert_with(Instant::now).elapsed();
        match waited {
            waited if waited > limit => return None,
            waited if waited > NAPS_AFTER => thread::sleep(NAP),
            _ => thread::yield_now(),
        }
    }
    None
}

impl Endpoint {
    fn create(worker: &Rc<Worker>, mut params: sys::ucp_ep_params_t) -> Result<Self> {
        let broken = Arc::new(AtomicI8::new(sys::UCS_OK));
        let flag = Arc::into_raw(broken.clone());
        let fields =
            sys::UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | sys::UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.field_mask |= u64::from(fields);
        params.err_mode = sys::UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = sys::ucp_err_handler_t {
            cb: Some(broke),
            arg: flag.cast_mut().cast(),
        };
        let mut raw = null_mut();
        // SAFETY: the worker is alive; what `params` points to is so for the time of the call, the
        // flag for longer (U4).
        let made = Status::check(unsafe { sys::ucp_ep_create(worker.raw, &params, &mut raw) });
        if let Err(error) = made {
            // SAFETY: UCX made nothing that could write to it.
            drop(unsafe { Arc::from_raw(flag) });
            return Err(error);
        }
        Ok(Self {
            raw,
            broken,
            key: None,
            worker: worker.clone(),
        })
    }

    /// Connects to the worker at `address`, which connects to this one, too: UCX makes one
    /// connection of both. Returns before anything was sent.
    pub(crate) fn connect(worker: &Rc<Worker>, address: &[u8]) -> Result<Self> {
        let params = sys::ucp_ep_params_t {
            field_mask: u64::from(sys::UCP_EP_PARAM_FIELD_REMOTE_ADDRESS),
            // UCX reads as many bytes as the address says that it has. It came over a connection
            // whose frames are checked and whose other end proved that it knows the secret.
            address: address.as_ptr().cast(),
            ..Default::default()
        };
        Self::create(worker, params)
    }

    /// What [`Message::from`](super::Message) has.
    pub(crate) fn id(&self) -> usize {
        self.raw.addr()
    }

    /// The error that ended it, if one did.
    #[inline]
    pub(crate) fn broken(&self) -> Result<()> {
        Status::check(self.broken.load(Relaxed))
    }

    /// Takes what the other side packed.
    pub(crate) fn unpack(&mut self, key: &[u8]) -> Result<()> {
        let mut raw = null_mut();
        // SAFETY: the endpoint is alive. UCX reads as many bytes as the key says that it has; it
        // came over a connection whose other end proved that it knows the secret.
        Status::check(unsafe { sys::ucp_ep_rkey_unpack(self.raw, key.as_ptr().cast(), &mut raw) })?;
        self.key = Some(Key(raw));
        Ok(())
    }

    fn key(&self) -> Result<sys::ucp_rkey_h> {
        self.key.as_ref().map(|key| key.0).ok_or(Status::ODD)
    }

    fn pending(
        &self,
        request: sys::ucs_status_ptr_t,
        buffer: ManuallyDrop<Vec<u64>>,
    ) -> Result<Pending> {
        match sys::request(request) {
            Ok(request) => Ok(Pending {
                request,
                buffer,
                worker: self.worker.clone(),
            }),
            Err(status) => {
                // Nothing is under way.
                drop(ManuallyDrop::into_inner(buffer));
                Err(Status(status))
            }
        }
    }

    /// Reads as many words as `buffer` has.
    pub(crate) fn get(&self, buffer: Vec<u64>, from: u64) -> Result<Pending> {
        self.broken()?;
        let mut buffer = ManuallyDrop::new(buffer);
        let (at, bytes) = (buffer.as_mut_ptr().cast(), 8 * buffer.len());
        let key = self.key()?;
        let params = sys::ucp_request_param_t::default();
        // SAFETY: the endpoint is alive; the buffer stays where it is until UCX is done (U1).
        let request = unsafe { sys::ucp_get_nbx(self.raw, at, bytes, from, key, &params) };
        self.pending(request, buffer)
    }

    /// Sends a message.
    pub(crate) fn send(&self, header: &Header, words: &[u64]) -> Result<Pending> {
        self.broken()?;
        let mut buffer = header.to_vec();
        buffer.extend_from_slice(words);
        let buffer = ManuallyDrop::new(buffer);
        let start: *const u64 = buffer.as_ptr();
        let params = sys::ucp_request_param_t {
            op_attr_mask: sys::UCP_OP_ATTR_FIELD_FLAGS,
            flags: sys::UCP_AM_SEND_FLAG_REPLY | sys::UCP_AM_SEND_FLAG_EAGER,
            ..Default::default()
        };
        // SAFETY: as for `put`: header and words are one buffer.
        let request = unsafe {
            let data = start.add(HEADER_WORDS).cast();
            let bytes = 8 * HEADER_WORDS;
            let length = 8 * words.len();
            sys::ucp_am_send_nbx(
                self.raw,
                MESSAGE_ID,
                start.cast(),
                bytes,
                data,
                length,
                &params,
            )
        };
        self.pending(request, buffer)
    }

    /// Ends it by force: what is under way on either side fails. False: UCX did not end it within
    /// `limit`; it does so when the worker is destroyed.
    pub(crate) fn close(mut self, limit: Duration) -> bool {
        self.key = None;
        let params = sys::ucp_request_param_t {
            op_attr_mask: sys::UCP_OP_ATTR_FIELD_FLAGS,
            flags: sys::UCP_EP_CLOSE_FLAG_FORCE,
            ..Default::default()
        };
        // SAFETY: the endpoint is alive, and closed once, for `self` is taken.
        let request = unsafe { sys::ucp_ep_close_nbx(self.raw, &params) };
        let closing = self.pending(request, ManuallyDrop::new(Vec::new()));
        let ended = closing.is_ok_and(|closing| {
            // The result says how it ended; it ended.
            wait_for(&self.worker, limit, || closing.look()).is_some()
        });
        if ended {
            // SAFETY: U4: the count that `create` left with UCX, which has ended the endpoint.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(&self.broken)) };
        }
        ended
    }
}
