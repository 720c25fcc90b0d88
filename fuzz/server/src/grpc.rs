//! Calls of gRPC: each method of each service, with a message of its type that has any values.

use std::{net::SocketAddr, time::Duration};

use fastrand::Rng;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, Value, prost::Message as _,
};
use snowmint_wire::grpc::{
    FILE_DESCRIPTOR_SET,
    store::{INSTANCE, SERVICE, VERSION},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    dice,
    http2::{self, Request},
};

/// Length of the flag and the length before each message.
const HEAD: usize = 5;

pub fn methods() -> Vec<MethodDescriptor> {
    let pool =
        DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the committed descriptors are whole");
    pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect()
}

/// Calls `Describe`; returns the value of the header that all other verbs of `store.v1` need. A
/// call without it ends before its rights, its limits and the store.
pub async fn instance(
    address: SocketAddr,
    methods: &[MethodDescriptor],
    token: &str,
) -> Option<String> {
    let is_describe = |method: &&MethodDescriptor| {
        method.name() == "Describe" && method.parent_service().full_name() == SERVICE
    };
    let describe = methods.iter().find(is_describe)?;
    let mut message = DynamicMessage::new(describe.input());
    message.set_field_by_name("version", Value::U32(VERSION));
    let message = message.encode_to_vec();
    let mut body = vec![0];
    body.extend((message.len() as u32).to_be_bytes());
    body.extend(message);
    let request = Request { headers: headers(path(describe), token), body };
    let response = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(&http2::single(&request)).await.ok()?;
        let mut found = Vec::new();
        loop {
            if let Some(data) = http2::response(&found) {
                return Some(data);
            }
            if stream.read_buf(&mut found).await.ok()? == 0 {
                return None;
            }
        }
    };
    let data = tokio::time::timeout(Duration::from_secs(5), response).await.ok()??;
    let described = DynamicMessage::decode(describe.output(), data.get(HEAD..)?).ok()?;
    let instance = described.get_field_by_name("instance")?.as_str()?.to_owned();
    (!instance.is_empty()).then_some(instance)
}

fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

fn headers(path: String, token: &str) -> Vec<(String, String)> {
    vec![
        (":method".to_owned(), "POST".to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), path),
        (":authority".to_owned(), "127.0.0.1".to_owned()),
        ("content-type".to_owned(), "application/grpc".to_owned()),
        ("te".to_owned(), "trailers".to_owned()),
        ("authorization".to_owned(), format!("Bearer {token}")),
    ]
}

/// Returns a call of one method. Nine in ten have the header of the instance. One in ten is a
/// health watch, which stays open.
pub fn request(
    rng: &mut Rng,
    methods: &[MethodDescriptor],
    token: &str,
    instance: &str,
) -> Request {
    let (path, message) = if rng.u8(..10) == 0 {
        ("/grpc.health.v1.Health/Watch".to_owned(), Vec::new())
    } else {
        let method = &methods[rng.usize(..methods.len())];
        (path(method), message(rng, &method.input(), 4).encode_to_vec())
    };
    let mut body = vec![u8::from(rng.u8(..40) == 0)];
    let length = if rng.u8(..30) == 0 { rng.u32(..) } else { message.len() as u32 };
    body.extend(length.to_be_bytes());
    body.extend(message);
    if rng.u8(..10) == 0 {
        dice::spoil(rng, &mut body);
    }
    let token = if rng.u8(..10) == 0 { "wrong" } else { token };
    let mut headers = headers(path, token);
    if rng.u8(..10) > 0 {
        headers.push((INSTANCE.to_owned(), instance.to_owned()));
    }
    if rng.u8(..5) == 0 {
        headers.push(("grpc-timeout".to_owned(), format!("{}m", dice::number(rng))));
    }
    Request { headers, body }
}

fn message(rng: &mut Rng, of: &MessageDescriptor, depth: u8) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for field in of.fields() {
        if rng.u8(..4) == 0 || (depth == 0 && matches!(field.kind(), Kind::Message(_))) {
            continue;
        }
        let usual = if rng.bool() { usual(rng, &field) } else { None };
        if let Some(value) = usual.or_else(|| whole(rng, &field, depth)) {
            message.set_field(&field, value);
        }
    }
    message
}

/// Returns a usual value of members and pools, which most verbs look for first.
fn usual(rng: &mut Rng, field: &FieldDescriptor) -> Option<Value> {
    const RECYCLE: i32 = 1;
    let is_of_pool = field.parent_message().name() == "Pool";
    if field.cardinality() == Cardinality::Repeated {
        return None;
    }
    match (field.name(), field.kind()) {
        ("member" | "incarnation" | "holder" | "supersedes", Kind::String) => {
            Some(Value::String(format!("{:032x}", rng.u8(1..9))))
        }
        ("pool", Kind::String) => Some(Value::String("workers-10".to_owned())),
        ("name", Kind::String) if is_of_pool => Some(Value::String("workers-10".to_owned())),
        ("slots", Kind::Uint64) if is_of_pool => Some(Value::U64(1_024)),
        ("group", Kind::Uint32) if is_of_pool => Some(Value::U32(1)),
        ("reuse", Kind::Enum(_)) if is_of_pool => Some(Value::EnumNumber(RECYCLE)),
        _ => None,
    }
}

fn whole(rng: &mut Rng, field: &FieldDescriptor, depth: u8) -> Option<Value> {
    if field.is_map() {
        return None;
    }
    if field.cardinality() == Cardinality::Repeated {
        let count = if rng.u8(..30) == 0 { 2_000 } else { rng.usize(..4) };
        return Some(Value::List((0..count).map(|_| single(rng, field, depth)).collect()));
    }
    Some(single(rng, field, depth))
}

fn single(rng: &mut Rng, field: &FieldDescriptor, depth: u8) -> Value {
    let number = number(rng);
    match field.kind() {
        Kind::Double => Value::F64(number as f64),
        Kind::Float => Value::F32(number as f32),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(number as i64),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(number as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(number),
        Kind::Bool => Value::Bool(rng.bool()),
        Kind::String => Value::String(dice::name(rng)),
        Kind::Bytes => Value::Bytes(dice::bytes(rng, 40).into()),
        Kind::Enum(_) => Value::EnumNumber(rng.i32(-1..8)),
        Kind::Message(of) => Value::Message(message(rng, &of, depth.saturating_sub(1))),
    }
}

fn number(rng: &mut Rng) -> u64 {
    const EDGES: [u64; 8] = [0, 1, 10, 1_000, 1 << 32, 1 << 53, (1 << 63) - 1, u64::MAX];
    if rng.bool() { EDGES[rng.usize(..EDGES.len())] } else { rng.u64(..) >> rng.u8(..64) }
}
