//! Contexts, and memory that other machines reach.

use super::status::{Result, Status};
use indexy_dex::remote::Lent;
use indexy_ucx_sys as sys;
use std::{
    ffi::{CStr, c_void},
    ptr::{NonNull, null, null_mut},
    sync::{Arc, atomic::AtomicU64},
};

/// UCX in this process, for workers of any number of threads.
pub(crate) struct Context {
    pub(super) raw: sys::ucp_context_h,
}

// SAFETY: made with `mt_workers_shared`, so UCX locks what workers of several threads share.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

/// What a context is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Verbs.
    Client,
    /// Also sleeping until something comes.
    Server,
}

/// What holds whatever the environment says.
const SETTINGS: [(&CStr, &CStr); 2] = [
    // Memory of these kinds comes zeroed, and other processes of the machine can map the first.
    (c"ALLOC_PRIO", c"md:sysv,md:posix,thp,mmap"),
    // A peer that is gone is noticed in this time where the network does not say so.
    (c"KEEPALIVE_INTERVAL", c"1s"),
];

/// Shared memory says that a peer is gone only if it is asked to. No transport but it knows this.
const MIND_PEERS: (&CStr, &CStr) = (c"MM_ERROR_HANDLING", c"y");
/// What `UCX_TLS` calls transports over shared memory, or sets that have them.
const SHARED: [&str; 7] = ["all", "shm", "sm", "mm", "posix", "sysv", "^"];

/// Whether `UCX_TLS` may choose shared memory. UCX warns of a setting that no transport takes.
fn may_share(transports: Option<&str>) -> bool {
    transports.is_none_or(|names| SHARED.iter().any(|shared| names.contains(shared)))
}

impl Context {
    /// Transports are chosen by `UCX_TLS` and what the machine has.
    pub(crate) fn new(purpose: Use) -> Result<Arc<Self>> {
        let mut config = null_mut();
        // SAFETY: no prefix and no file; `config` is a place to write to.
        Status::check(unsafe { sys::ucp_config_read(null(), null(), &mut config) })?;
        let mut set = Ok(());
        let modify = |(name, value): (&CStr, &CStr)| {
            // SAFETY: `config` was read above; both are strings with an end.
            Status::check(unsafe { sys::ucp_config_modify(config, name.as_ptr(), value.as_ptr()) })
        };
        for setting in SETTINGS {
            set = set.and(modify(setting));
        }
        if may_share(std::env::var("UCX_TLS").ok().as_deref()) {
            // An error: this UCX has no shared memory, or minds peers as it is.
            let _ = modify(MIND_PEERS);
        }
        let features = sys::UCP_FEATURE_RMA | sys::UCP_FEATURE_AM;
        let wakeup = match purpose {
            Use::Client => 0,
            Use::Server => sys::UCP_FEATURE_WAKEUP,
        };
        let params = sys::ucp_params_t {
            field_mask: u64::from(
                sys::UCP_PARAM_FIELD_FEATURES | sys::UCP_PARAM_FIELD_MT_WORKERS_SHARED,
            ),
            features: u64::from(features | wakeup),
            mt_workers_shared: 1,
            ..Default::default()
        };
        let mut raw = null_mut();
        let (major, minor) = (sys::UCP_API_MAJOR, sys::UCP_API_MINOR);
        let made = set.and_then(|()| {
            // SAFETY: `params` and `config` are alive; the version is the header's of the types.
            let made = unsafe { sys::ucp_init_version(major, minor, &params, config, &mut raw) };
            Status::check(made)
        });
        // SAFETY: `config` was read above and is not used again.
        unsafe { sys::ucp_config_release(config) };
        made.map(|()| Arc::new(Self { raw }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: U2: nothing that was made from it is left.
        unsafe { sys::ucp_cleanup(self.raw) };
    }
}

/// Zeroed memory that UCX allocated and registered.
pub(crate) struct Memory {
    raw: sys::ucp_mem_h,
    start: NonNull<AtomicU64>,
    words: usize,
    context: Arc<Context>,
}

// SAFETY: plain memory that every thread may access; all accesses of this process are atomic.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(context: Arc<Context>, bytes: usize) -> Result<Self> {
        let fields = sys::UCP_MEM_MAP_PARAM_FIELD_LENGTH
            | sys::UCP_MEM_MAP_PARAM_FIELD_FLAGS
            | sys::UCP_MEM_MAP_PARAM_FIELD_PROT;
        let local = sys::UCP_MEM_MAP_PROT_LOCAL_READ | sys::UCP_MEM_MAP_PROT_LOCAL_WRITE;
        let params = sys::ucp_mem_map_params_t {
            field_mask: u64::from(fields),
            length: bytes,
            // Without NONBLOCK every page would be touched when it is registered for a card.
            flags: sys::UCP_MEM_MAP_ALLOCATE | sys::UCP_MEM_MAP_NONBLOCK,
            // F1: a network card refuses others' writes. UCX's other transports check nothing.
            prot: local | sys::UCP_MEM_MAP_PROT_REMOTE_READ,
            ..Default::default()
        };
        let mut raw = null_mut();
        // SAFETY: the context is alive; UCX chooses the address.
        Status::check(unsafe { sys::ucp_mem_map(context.raw, &params, &mut raw) })?;
        let fields = sys::UCP_MEM_ATTR_FIELD_ADDRESS | sys::UCP_MEM_ATTR_FIELD_LENGTH;
        let mut attributes = sys::ucp_mem_attr_t {
            field_mask: u64::from(fields),
            ..Default::default()
        };
        // SAFETY: `raw` was mapped above; `attributes` says which fields it wants.
        let asked = Status::check(unsafe { sys::ucp_mem_query(raw, &mut attributes) });
        let start = NonNull::new(attributes.address.cast::<AtomicU64>());
        let is_whole = attributes.length >= bytes && attributes.address.addr().is_multiple_of(8);
        match (asked, start) {
            (Ok(()), Some(start)) if is_whole => Ok(Self {
                raw,
                start,
                words: bytes / 8,
                context,
            }),
            (asked, _) => {
                // SAFETY: mapped above, and nothing refers to it.
                unsafe { sys::ucp_mem_unmap(context.raw, raw) };
                Err(asked.err().unwrap_or(Status::ODD))
            }
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    /// What another machine needs to reach it.
    pub(crate) fn pack_key(&self) -> Result<Vec<u8>> {
        let (mut buffer, mut bytes): (*mut c_void, usize) = (null_mut(), 0);
        // SAFETY: both handles are alive; the others are places to write to.
        Status::check(unsafe {
            sys::ucp_rkey_pack(self.context.raw, self.raw, &mut buffer, &mut bytes)
        })?;
        // SAFETY: UCX says that so many bytes are there, until the buffer is released.
        let key = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), bytes) }.to_vec();
        // SAFETY: it came from `ucp_rkey_pack` and is not used again.
        unsafe { sys::ucp_rkey_buffer_release(buffer) };
        Ok(key)
    }
}

impl Lent for Memory {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: UCX allocated so many bytes at `start`, aligned and initialised (zeroed, see
        // `SETTINGS`), until `drop`; any bits are a valid `AtomicU64`. Others write them, as they
        // may write atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; no borrow of `words` outlives `self`.
        unsafe { sys::ucp_mem_unmap(self.context.raw, self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::may_share;

    #[test]
    fn shared_memory_is_asked_to_mind_peers_where_it_may_be_used() {
        for shared in [
            None,
            Some("all"),
            Some("shm,self"),
            Some("tcp,sysv"),
            Some("^tcp"),
        ] {
            assert!(may_share(shared), "{shared:?}");
        }
        assert!(!may_share(Some("tcp,self")));
        assert!(!may_share(Some("rc_verbs,self")));
    }
}
