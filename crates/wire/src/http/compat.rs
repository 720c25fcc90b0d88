//! Bodies of the compatibility APIs: the responses of Leaf, Tinyid and CosId's proxy, with the
//! fields in their order.
//!
//! IDs are JSON numbers here, since the clients of these systems read numbers.

use serde::{Deserialize, Serialize};

/// The content type of JSON, as Leaf and Tinyid write it.
pub const JSON_UTF8: &str = "application/json;charset=UTF-8";
/// The content type of text, as all three write it. The text has no line end.
pub const TEXT_UTF8: &str = "text/plain;charset=UTF-8";

/// Every JSON response of Tinyid. Its `code` has the meaning that the HTTP status has elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TinyidBody<T> {
    /// The result; null in an error.
    pub data: Option<T>,
    /// 200, or a `TINYID_` constant of this module.
    pub code: u32,
    /// Empty, or the error in words.
    pub message: String,
}

/// [`TinyidBody::code`] of a successful response.
pub const TINYID_OK: u32 = 200;
/// [`TinyidBody::code`] of a request that its token does not permit.
pub const TINYID_TOKEN: u32 = 5;
/// [`TinyidBody::message`] of [`TINYID_TOKEN`].
pub const TINYID_TOKEN_MESSAGE: &str = "token is error";
/// [`TinyidBody::code`] of every other error.
pub const TINYID_ERROR: u32 = 6;

impl<T> TinyidBody<T> {
    /// Returns the body of a successful response.
    #[must_use]
    pub const fn of(data: T) -> Self {
        Self { data: Some(data), code: TINYID_OK, message: String::new() }
    }

    /// Returns the body of an error.
    #[must_use]
    pub const fn error(code: u32, message: String) -> Self {
        Self { data: None, code, message }
    }
}

/// The numbers above `current_id`, up to `max_id`, that leave `remainder` when divided by `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TinyidSegment {
    /// Maximum of the numbers.
    pub max_id: u64,
    /// The number at which the client fetches the next segment.
    pub loading_id: u64,
    /// Exclusive minimum of the numbers.
    pub current_id: u64,
    /// Difference between adjacent numbers.
    pub delta: u32,
    /// Remainder of each number when divided by `delta`.
    pub remainder: u32,
}

/// An error of Leaf, in the form in which its web framework (Spring Boot 1.5) writes an exception.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafErrorBody {
    /// Time of the error, in Unix milliseconds.
    pub timestamp: u64,
    /// The HTTP status, repeated.
    pub status: u16,
    /// The status in words.
    pub error: String,
    /// The name of the exception's class.
    pub exception: String,
    /// Leaf's result, which has the error in its `id`.
    pub message: String,
    /// The path of the request.
    pub path: String,
    /// The error in words. Leaf has no such field.
    pub reason: String,
}

/// Leaf's decoding of an ID, from `/decodeSnowflakeId`. Leaf takes the fields from a hash table,
/// which has them in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafDecodedBody {
    /// The worker number of the minter.
    pub worker_id: String,
    /// The sequence number within its millisecond.
    pub sequence_id: String,
    /// Unix milliseconds, with the local time in brackets.
    pub timestamp: String,
}

/// Leaf's response for a text that is not an ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafUndecodedBody {
    /// [`LEAF_UNDECODED`].
    pub error_msg: String,
}

/// Leaf's error text for an ID that cannot be read.
pub const LEAF_UNDECODED: &str = "snowflake Id反解析发生异常!";

/// An error of CosId's proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CosIdErrorBody {
    /// `400`, `500`, or a code of its own.
    pub code: String,
    /// The error in words.
    pub msg: String,
    /// Further errors; always empty here.
    pub errors: Vec<String>,
}

/// A machine ID, as CosId's proxy sends it to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CosIdMachineBody {
    /// The number.
    #[serde(rename = "machineId")]
    pub machine_id: u64,
    /// Unix milliseconds that the client's clock must have passed before the client mints.
    #[serde(rename = "lastTimeStamp")]
    pub last_time_stamp: u64,
}

/// [`CosIdErrorBody::code`] when all machine IDs are in use.
pub const COSID_OVERFLOW: &str = "M-01";
/// [`CosIdErrorBody::code`] when no machine ID is known for an instance.
pub const COSID_NOT_FOUND: &str = "M-02";
/// [`CosIdErrorBody::code`] when an instance has lost its machine ID to another instance.
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
