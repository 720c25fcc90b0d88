//! Parts of the description beyond types: patterns of names and formats, the keys of a source, and
//! the headers of an error response. The tables of the checks supply them, where a table exists.

use snowmint_coord::spec::keys;
use snowmint_coord::spec::{Key, Takes};
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Parameter;
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::{
    AdditionalProperties, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Components, RefOr};

/// Names of sources, as checked by `coord`.
const NAME: &str = "^[A-Za-z0-9_.-]{1,63}$";
/// Numbers as texts, as read by `number_in`.
const DIGITS: &str = "^[0-9]{1,20}$";
/// Member IDs, as read by `coord`.
const MEMBER: &str = "^[0-9A-Fa-f]{32}$";
/// Durations, as read by `coord`.
const DURATION: &str = "^[0-9]{1,20}(ms|s|m|h|d)$";
/// Longest key of a counter, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// Bodies that have the keys of a source among others, and whether their keys are complete.
const OF_SOURCES: [(&str, bool); 3] =
    [("SourceRequest", true), ("AlterRequest", true), ("SourceBody", false)];

/// Describes the texts that a parameter accepts.
pub(super) fn narrow(parameter: &mut Parameter) {
    let Some(RefOr::T(Schema::Object(text))) = &mut parameter.schema else { return };
    match parameter.name.as_str() {
        "source" | "name" => text.pattern = Some(NAME.into()),
        "key" => {
            text.min_length = Some(1);
            text.max_length = Some(KEY_BYTES_MAX);
        }
        "member" => text.pattern = Some(MEMBER.into()),
        "id" | "layout" => text.min_length = Some(1),
        "format" => formats(text),
        _ => {}
    }
}

/// Describes that an optional body is never null: null is not a JSON object.
pub(super) fn no_null(body: &mut RequestBody) {
    for content in body.content.values_mut() {
        let RefOr::T(content) = content else { continue };
        let Some(RefOr::T(Schema::OneOf(choice))) = &content.schema else { continue };
        let named = choice.items.iter().find(|item| matches!(item, RefOr::Ref(_)));
        if let Some(named) = named.cloned() {
            content.schema = Some(named);
        }
    }
}

/// Describes the names, formats and keys of sources in bodies.
pub(super) fn fill_in(components: &mut Components) {
    for (body, is_all) in OF_SOURCES {
        let Some(RefOr::T(Schema::Object(body))) = components.schemas.get_mut(body) else {
            continue;
        };
        if let Some(RefOr::T(Schema::Object(name))) = body.properties.get_mut("name") {
            name.pattern = Some(NAME.into());
        }
        let keys = keys().map(|(name, key)| (name.to_owned(), RefOr::T(Schema::Object(key))));
        body.properties.extend(keys);
        if is_all {
            body.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
    if let Some(format) = field(components, "MintRequest", "format") {
        formats(format);
    }
    if let Some(code) = field(components, "ErrorInfo", "code") {
        code.enum_values = Some(Code::ALL.iter().map(|code| code.as_str().into()).collect());
    }
    // A pattern at the field would be one of the names as well.
    if let Some(numbers) = field(components, "RecoveryBody", "segments")
        && let Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(number)))) =
            numbers.additional_properties.as_deref_mut()
    {
        number.pattern = Some(DIGITS.into());
    }
}

/// Returns a field of a body.
fn field<'a>(components: &'a mut Components, body: &str, field: &str) -> Option<&'a mut Object> {
    let RefOr::T(Schema::Object(body)) = components.schemas.get_mut(body)? else { return None };
    let RefOr::T(Schema::Object(field)) = body.properties.get_mut(field)? else { return None };
    Some(field)
}

/// Returns the headers that an error response may have.
pub(super) fn headers() -> [(&'static str, Header); 3] {
    let header = |kind: Type, about: &str| {
        HeaderBuilder::new()
            .schema(Some(Schema::Object(ObjectBuilder::new().schema_type(kind).build())))
            .description(Some(about))
            .build()
    };
    [
        ("Retry-After", header(Type::Integer, "Seconds until a retry helps, if it does")),
        ("WWW-Authenticate", header(Type::String, "`Bearer`, with 401")),
        ("Allow", header(Type::String, "Methods of the path, with 405")),
    ]
}

/// Lists the formats of IDs. Where the text may be null, null stays valid.
fn formats(text: &mut Object) {
    let is_optional = matches!(text.schema_type, SchemaType::Array(_));
    let names = Format::ALL.into_iter().map(|format| format.name().into());
    let all = ["number".into()].into_iter().chain(names);
    text.enum_values = Some(all.chain(is_optional.then_some(serde_json::Value::Null)).collect());
}

/// Returns the keys of a source; those with a dot in their name are in tables.
fn keys() -> impl Iterator<Item = (&'static str, Object)> {
    let mut found: Vec<(&str, Object)> = Vec::new();
    for key in keys::all() {
        let Some((table, name)) = key.name.split_once('.') else {
            found.push((key.name, value(key)));
            continue;
        };
        let place = found.iter().position(|(name, _)| *name == table);
        let place = place.unwrap_or_else(|| {
            found.push((table, empty_table()));
            found.len() - 1
        });
        if let Some((_, table)) = found.get_mut(place) {
            table.properties.insert(name.into(), RefOr::T(Schema::Object(value(key))));
        }
    }
    found.into_iter()
}

fn empty_table() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// Returns the type of a key, with its words or bounds; null counts as absent, or removes the key.
fn value(key: &Key) -> Object {
    let of_type =
        |kind| ObjectBuilder::new().schema_type(SchemaType::from_iter([kind, Type::Null]));
    let value = match key.takes {
        Takes::Text => of_type(Type::String),
        Takes::Word(words) => {
            let words = words().iter().map(|word| (*word).into());
            of_type(Type::String).enum_values(Some(words.chain([serde_json::Value::Null])))
        }
        Takes::Duration => of_type(Type::String).pattern(Some(DURATION)),
        Takes::Number => {
            let (least, most) = key.within.unwrap_or((0, u64::MAX));
            let bound = |bound| usize::try_from(bound).ok();
            of_type(Type::Integer).minimum(bound(least)).maximum(bound(most))
        }
        Takes::Flag => of_type(Type::Boolean),
    };
    let default = if key.default.is_empty() { "none" } else { key.default };
    let bounds = key.bounds().map(|bounds| format!(" Bounds: {bounds}.")).unwrap_or_default();
    let about = format!("For {}: {}. Default: {default}.{bounds}", key.kinds, key.doc());
    value.description(Some(about)).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmint_coord::catalog::check_name;
    use utoipa::openapi::schema::ComponentsBuilder;

    #[test]
    fn names_in_the_description_are_those_accepted() {
        // The pattern is taken apart, since nothing here reads patterns.
        let (set, times) = NAME.trim_matches(['^', '$']).split_once('{').unwrap();
        assert_eq!((set, times), ("[A-Za-z0-9_.-]", "1,63}"));
        for byte in 0..=127_u8 {
            let name = char::from(byte).to_string();
            let is_named = byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            assert_eq!(check_name("source", &name).is_ok(), is_named, "{name:?}");
        }
        for (length, is_accepted) in [(0, false), (1, true), (63, true), (64, false)] {
            assert_eq!(check_name("source", &"a".repeat(length)).is_ok(), is_accepted, "{length}");
        }
    }

    #[test]
    fn every_key_of_a_source_is_described() {
        let body = ObjectBuilder::new().property("name", ObjectBuilder::new());
        let mut components = ComponentsBuilder::new().schema("SourceRequest", body).build();
        fill_in(&mut components);
        let body = serde_json::to_value(&components.schemas["SourceRequest"]).unwrap();
        assert_eq!(body["additionalProperties"], false);
        assert_eq!(body["properties"]["name"]["pattern"], NAME);
        for key in keys::all() {
            let path = key.name.replace('.', "/properties/");
            let found = body.pointer(&format!("/properties/{path}")).unwrap();
            assert!(found["description"].as_str().unwrap().contains(&key.doc()), "{}", key.name);
        }
    }

    #[test]
    fn keys_of_a_source_have_their_words_and_bounds() {
        let keys: std::collections::BTreeMap<_, _> = keys().collect();
        let key = |name: &str| serde_json::to_value(&keys[name]).unwrap();
        let words = serde_json::json!(["local", "global", null]);
        assert_eq!(key("order")["enum"], words);
        assert_eq!(key("wait_max")["pattern"], DURATION);
        let step = &key("step")["properties"]["size"];
        assert_eq!((&step["minimum"], &step["maximum"]), (&1.into(), &(1_u64 << 40).into()));
        assert_eq!(key("shards")["maximum"], u64::MAX);
        for text in ["0ms", "5s", "90m", "7h", "30d"] {
            assert!(text.parse::<snowmint_coord::spec::Span>().is_ok(), "{text}");
        }
    }
}
