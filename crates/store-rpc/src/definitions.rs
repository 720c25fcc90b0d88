//! Definitions of sources.

use snowmint_coord::segment::SegmentRow;
use snowmint_coord::{Definition, NewDefinition, SourceState};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

codec! {
    NewDefinition as NewDefinition { name, spec, identity, enabled }
        = [NewDefinition { name, spec, identity, enabled }];
    Definition as Definition { name, spec, identity, version, state, mark, floor, segment_version }
        = [Definition {
            name, spec, identity, version, state,
            segment: SegmentRow { mark, floor, version: segment_version },
        }];
}

impl Codec<proto::DefinitionResponse> for Definition {
    fn write(self) -> proto::DefinitionResponse {
        proto::DefinitionResponse { error: None, definition: Some(self.write()) }
    }

    fn read(response: proto::DefinitionResponse) -> Result<Self, Malformed> {
        let message = response.definition.ok_or(Malformed::Missing("definition"))?;
        let named = format!("source {:?} has state {}", message.name, message.state);
        Self::read(message).map_err(|error| match error {
            Malformed::Newer(_) => Malformed::Newer(named),
            error => error,
        })
    }
}

/// Disables sources with a state that is unknown here: they cannot be used here.
pub(crate) fn usable(mut all: Vec<proto::Definition>) -> Result<Vec<proto::Definition>, Malformed> {
    for definition in &mut all {
        if proto::State::try_from(definition.state).is_err() {
            definition.state = SourceState::Disabled.write();
        }
    }
    Ok(all)
}

impl Codec<i32> for SourceState {
    fn write(self) -> i32 {
        let state = match self {
            Self::Enabled => proto::State::Enabled,
            Self::Disabled => proto::State::Disabled,
            Self::Deleted => proto::State::Deleted,
        };
        state.into()
    }

    fn read(state: i32) -> Result<Self, Malformed> {
        match proto::State::try_from(state) {
            Ok(proto::State::Enabled) => Ok(Self::Enabled),
            Ok(proto::State::Disabled) => Ok(Self::Disabled),
            Ok(proto::State::Deleted) => Ok(Self::Deleted),
            Ok(proto::State::Unspecified) => {
                let sentence = "source state is missing; send enabled, disabled or deleted";
                Err(Malformed::Unspecified("state of a source", sentence))
            }
            Err(_) => Err(Malformed::Newer(format!("source state {state}"))),
        }
    }
}
