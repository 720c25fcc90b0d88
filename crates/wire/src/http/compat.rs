//! Bodies of the compatible doors: what Leaf, Tinyid and CosId's proxy answer, field by field in the
//! order in which they write them.
//!
//! IDs are JSON numbers here, since their clients read numbers.

use serde::{Deserialize, Serialize};

/// The content type of JSON, as Leaf and Tinyid say it.
pub const JSON_UTF8: &str = "application/json;charset=UTF-8";
/// The content type of text, as all three say it. Nothing ends a line.
pub const TEXT_UTF8: &str = "text/plain;charset=UTF-8";

/// Every JSON answer of Tinyid. It says in `code` what others say by the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TinyidBody<T> {
    /// What was asked for; null in an error.
    pub data: Option<T>,
    /// 200, or a `TINYID_` constant of this module.
    pub code: u32,
    /// Empty, or what went wrong.
    pub message: String,
}

/// [`TinyidBody::code`] of an answer that has what was asked for.
pub const TINYID_OK: u32 = 200;
/// [`TinyidBody::code`] of a request whose token may not ask for this.
pub const TINYID_TOKEN: u32 = 5;
/// [`TinyidBody::message`] of it.
pub const TINYID_TOKEN_MESSAGE: &str = "token is error";
/// [`TinyidBody::code`] of every other error.
pub const TINYID_ERROR: u32 = 6;

impl<T> TinyidBody<T> {
    /// An answer.
    #[must_use]
    pub const fn of(data: T) -> Self {
        Self { data: Some(data), code: TINYID_OK, message: String::new() }
    }

    /// An error.
    #[must_use]
    pub const fn error(code: u32, message: String) -> Self {
        Self { data: None, code, message }
    }
}

/// The numbers above `current_id`, up to `max_id`, that leave `remainder` when divided by `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TinyidSegment {
    /// None is higher.
    pub max_id: u64,
    /// From here on the client fetches the next.
    pub loading_id: u64,
    /// All are higher.
    pub current_id: u64,
    /// From each to the next.
    pub delta: u32,
    /// Of each divided by `delta`.
    pub remainder: u32,
}

/// An error of Leaf: what its web framework (Spring Boot 1.5) makes of an exception.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafErrorBody {
    /// When, in Unix milliseconds.
    pub timestamp: u64,
    /// The HTTP status once more.
    pub status: u16,
    /// The status in words.
    pub error: String,
    /// The name of the exception's class.
    pub exception: String,
    /// Leaf's result, whose `id` says what went wrong.
    pub message: String,
    /// What was asked for.
    pub path: String,
    /// What went wrong in words. Leaf has no such field.
    pub reason: String,
}

/// What `/decodeSnowflakeId` of Leaf says of an ID. In Leaf the fields are a hash table's, which has
/// them in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafDecodedBody {
    /// Who made it.
    pub worker_id: String,
    /// Which of its millisecond.
    pub sequence_id: String,
    /// Unix milliseconds, and in brackets the local time.
    pub timestamp: String,
}

/// What it says of what is no ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafUndecodedBody {
    /// [`LEAF_UNDECODED`].
    pub error_msg: String,
}

/// Leaf's words for an ID that cannot be read.
pub const LEAF_UNDECODED: &str = "snowflake Id反解析发生异常!";

/// An error of CosId's proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CosIdErrorBody {
    /// `400`, `500`, or a code of its own.
    pub code: String,
    /// What went wrong.
    pub msg: String,
    /// More of it; none here.
    pub errors: Vec<String>,
}

/// A machine ID, as CosId's proxy gives it to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CosIdMachineBody {
    /// The number.
    #[serde(rename = "machineId")]
    pub machine_id: u64,
    /// Unix milliseconds that the client's clock has to have passed before it mints.
    #[serde(rename = "lastTimeStamp")]
    pub last_time_stamp: u64,
}

/// [`CosIdErrorBody::code`] when all machine IDs are in use.
pub const COSID_OVERFLOW: &str = "M-01";
/// [`CosIdErrorBody::code`] when an instance has no machine ID, as far as is known.
pub const COSID_NOT_FOUND: &str = "M-02";
/// [`CosIdErrorBody::code`] when another has the instance's machine ID.
pub const COSID_LOST: &str = "M-03";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &impl Serialize) -> String {
        serde_json::to_string(body).unwrap()
    }

    #[test]
    fn fields_stand_in_the_order_of_the_peers() {
        assert_eq!(
            written(&TinyidBody::of(vec![2_u64])),
            r#"{"data":[2],"code":200,"message":""}"#
        );
        let error = TinyidBody::<()>::error(TINYID_TOKEN, TINYID_TOKEN_MESSAGE.to_owned());
        assert_eq!(written(&error), r#"{"data":null,"code":5,"message":"token is error"}"#);
        let segment =
            TinyidSegment { max_id: 9, loading_id: 2, current_id: 0, delta: 3, remainder: 1 };
        assert_eq!(
            written(&segment),
            r#"{"maxId":9,"loadingId":2,"currentId":0,"delta":3,"remainder":1}"#
        );
        let decoded = LeafDecodedBody {
            worker_id: "39".into(),
            sequence_id: "3448".into(),
            timestamp: "1567733700834(2019-09-06 01:35:00.834)".into(),
        };
        assert_eq!(
            written(&decoded),
            r#"{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 01:35:00.834)"}"#
        );
        let error = CosIdErrorBody { code: "400".into(), msg: "no".into(), errors: Vec::new() };
        assert_eq!(written(&error), r#"{"code":"400","msg":"no","errors":[]}"#);
        let machine = CosIdMachineBody { machine_id: 7, last_time_stamp: 0 };
        assert_eq!(written(&machine), r#"{"machineId":7,"lastTimeStamp":0}"#);
    }
}
