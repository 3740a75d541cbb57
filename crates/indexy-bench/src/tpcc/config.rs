//! Which transactions there are, and what a run consists of.

use super::scale::Scale;
use crate::contender::Others;
use serde::{Deserialize, Serialize};

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Transaction {
    /// Enters an order of 5 to 15 lines.
    NewOrder,
    /// Takes a customer's payment.
    Payment,
    /// Shows a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of each district of a warehouse.
    Delivery,
    /// Counts the items of recent orders that are short.
    StockLevel,
}

impl Transaction {
    /// All of them, by their numbers.
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// As reports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }
}

/// Which transactions are run, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// New-Order 45 %, Payment 43 %, Order-Status, Delivery and Stock-Level 4 % each.
    Standard,
    /// New-Order and Payment, half and half.
    Paper,
}

impl Mix {
    /// Of 100 transactions, how many are of each kind.
    pub fn shares(self) -> [(Transaction, u32); 5] {
        use Transaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
        match self {
            Mix::Standard => [
                (NewOrder, 45),
                (Payment, 43),
                (OrderStatus, 4),
                (Delivery, 4),
                (StockLevel, 4),
            ],
            Mix::Paper => [
                (NewOrder, 50),
                (Payment, 50),
                (OrderStatus, 0),
                (Delivery, 0),
                (StockLevel, 0),
            ],
        }
    }
}

/// What all steps of a run have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How large the database is.
    pub scale: Scale,
    /// What is run on it.
    pub mix: Mix,
    /// Which indexes the tables beside ORDER-LINE have.
    pub others: Others,
}
