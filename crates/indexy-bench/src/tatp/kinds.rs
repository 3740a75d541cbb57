//! The kinds of transactions, how often each is run, and how often it succeeds.

/// How many kinds of transactions there are.
pub(super) const KINDS: usize = 7;

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Transaction {
    /// Reads a subscriber.
    GetSubscriberData,
    /// Reads where calls go at a time.
    GetNewDestination,
    /// Reads access info of a type.
    GetAccessData,
    /// Changes a bit of a subscriber, and a special facility.
    UpdateSubscriberData,
    /// Changes the location of a subscriber, found by number.
    UpdateLocation,
    /// Adds a call forwarding.
    InsertCallForwarding,
    /// Removes one.
    DeleteCallForwarding,
}

impl Transaction {
    /// All of them, by their numbers.
    pub const ALL: [Self; KINDS] = [
        Self::GetSubscriberData,
        Self::GetNewDestination,
        Self::GetAccessData,
        Self::UpdateSubscriberData,
        Self::UpdateLocation,
        Self::InsertCallForwarding,
        Self::DeleteCallForwarding,
    ];

    /// As reports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetSubscriberData => "get_subscriber_data",
            Self::GetNewDestination => "get_new_destination",
            Self::GetAccessData => "get_access_data",
            Self::UpdateSubscriberData => "update_subscriber_data",
            Self::UpdateLocation => "update_location",
            Self::InsertCallForwarding => "insert_call_forwarding",
            Self::DeleteCallForwarding => "delete_call_forwarding",
        }
    }

    /// Of 100 transactions, how many are of this kind.
    pub const fn share(self) -> u32 {
        match self {
            Self::GetSubscriberData | Self::GetAccessData => 35,
            Self::UpdateLocation => 14,
            Self::GetNewDestination => 10,
            _ => 2,
        }
    }

    /// Least and largest share of success that the population makes. The forwardings that a run
    /// adds end at any time, so that more and more destinations are found.
    pub(super) const fn success(self) -> (f64, f64) {
        match self {
            Self::GetSubscriberData | Self::UpdateLocation => (1.0, 1.0),
            Self::GetNewDestination => (0.148, 0.205),
            Self::GetAccessData | Self::UpdateSubscriberData => (0.625, 0.625),
            Self::InsertCallForwarding | Self::DeleteCallForwarding => (0.3125, 0.3125),
        }
    }
}
