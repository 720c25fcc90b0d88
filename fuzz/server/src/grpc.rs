//! Calls of gRPC: each method of each service, with a message of its type that has any values.

use fastrand::Rng;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, Value, prost::Message as _,
};
use snowmint_wire::grpc::FILE_DESCRIPTOR_SET;

use crate::{dice, http2::Request};

pub fn methods() -> Vec<MethodDescriptor> {
    let pool =
        DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the committed descriptors are whole");
    pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect()
}

/// Returns a call of one method. One in ten is a health watch, which stays open.
pub fn request(rng: &mut Rng, methods: &[MethodDescriptor], token: &str) -> Request {
    let (path, message) = if rng.u8(..10) == 0 {
        ("/grpc.health.v1.Health/Watch".to_owned(), Vec::new())
    } else {
        let method = &methods[rng.usize(..methods.len())];
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        (path, message(rng, &method.input(), 4).encode_to_vec())
    };
    let mut body = vec![u8::from(rng.u8(..40) == 0)];
    let length = if rng.u8(..30) == 0 { rng.u32(..) } else { message.len() as u32 };
    body.extend(length.to_be_bytes());
    body.extend(message);
    if rng.u8(..10) == 0 {
        dice::spoil(rng, &mut body);
    }
    let token = if rng.u8(..10) == 0 { "wrong" } else { token };
    let mut headers = vec![
        (":method".to_owned(), "POST".to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), path),
        (":authority".to_owned(), "127.0.0.1".to_owned()),
        ("content-type".to_owned(), "application/grpc".to_owned()),
        ("te".to_owned(), "trailers".to_owned()),
        ("authorization".to_owned(), format!("Bearer {token}")),
    ];
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
        if let Some(value) = whole(rng, &field, depth) {
            message.set_field(&field, value);
        }
    }
    message
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
