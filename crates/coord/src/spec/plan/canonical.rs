//! Keys of a plan, every default written out.

use super::{
    DisguisePlan, DisguiseVersion, Hides, Plan, PrefillPlan, RollbackPlan, SnowflakePlan,
    StartPlan, UuidPlan,
};
use crate::spec::{
    DisguiseMode, DisguiseSpec, Kind, OnEmpty, OnRollback, PrefillSpec, SourceSpec, Span, UuidSpec,
};

/// Returns the configuration name of a value that serialises as a text.
pub(super) fn name_of(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

impl Plan {
    /// Returns the keys that make this plan, every default written out.
    pub(in crate::spec) fn to_spec(&self) -> SourceSpec {
        match self {
            Self::Snowflake(plan) => plan.to_spec(),
            Self::Segment(plan) => plan.to_spec(),
            Self::Counter(plan) => plan.to_spec(),
            Self::Uuid(plan) => plan.to_spec(),
            Self::Ulid => SourceSpec::of(Kind::Ulid),
        }
    }
}

impl SnowflakePlan {
    fn to_spec(&self) -> SourceSpec {
        let mut spec = SourceSpec {
            // The layout's written-out form holds unit and epoch.
            layout: Some(self.layout.to_string()),
            // Left out when false: then no reader has to know about it.
            short_life: self.short_life.then_some(true),
            unique: Some(self.unique),
            order: Some(self.order),
            burst: Some(Span::from_ms(self.burst_ms)),
            sequence_start: Some(match self.start {
                StartPlan::Zero => "zero".into(),
                StartPlan::RandomBelow(below) => format!("random:{below}"),
                StartPlan::Carried => "carried".into(),
            }),
            prefill: self.prefill.map(PrefillPlan::to_spec),
            disguise: self.disguise.map(DisguisePlan::to_spec),
            text: Some(self.text.to_string()),
            ..SourceSpec::of(Kind::Snowflake)
        };
        self.minter_plan.to_spec(&mut spec);
        spec.on_rollback = Some(match self.rollback_plan {
            RollbackPlan::Hold { lead_max_ms } => {
                spec.lead_max = Some(Span::from_ms(lead_max_ms));
                OnRollback::Hold
            }
            RollbackPlan::Borrow { lead_max_ms } => {
                spec.lead_max = Some(Span::from_ms(lead_max_ms));
                OnRollback::Borrow
            }
            RollbackPlan::Wait { wait_max_ms, fixed_ms } => {
                spec.wait_max = fixed_ms.is_none().then_some(Span::from_ms(wait_max_ms));
                spec.wait_for =
                    Some(fixed_ms.map_or("twice".into(), |ms| Span::from_ms(ms).to_string()));
                OnRollback::Wait
            }
            RollbackPlan::Fail => OnRollback::Fail,
            RollbackPlan::ClockSequence => OnRollback::ClockSequence,
            RollbackPlan::Ring { lead_max_ms } => {
                spec.lead_max = Some(Span::from_ms(lead_max_ms));
                OnRollback::Ring
            }
        });
        spec
    }
}

impl PrefillPlan {
    fn to_spec(self) -> PrefillSpec {
        PrefillSpec {
            enabled: Some(true),
            boost: Some(self.boost),
            threshold: Some(self.threshold_percent),
            schedule: self.schedule_ms.map(Span::from_ms),
            on_empty: Some(if self.wait_max_ms.is_some() { OnEmpty::Wait } else { OnEmpty::Error }),
            wait_max: self.wait_max_ms.map(Span::from_ms),
        }
    }
}

impl DisguisePlan {
    pub(super) fn to_spec(self) -> DisguiseSpec {
        let (mode, bits) = match self.hides {
            Hides::All { bits } => (DisguiseMode::Full, bits),
            Hides::BelowTime => (DisguiseMode::Ordered, None),
        };
        // Texts from before there were versions stay equal, byte by byte.
        let is_written = self.version != DisguiseVersion::Shared;
        let version = is_written.then_some(self.version.number());
        DisguiseSpec { mode: Some(mode), key: Some(self.key), version, bits, check: None }
    }
}

impl UuidPlan {
    fn to_spec(self) -> SourceSpec {
        let namespace = match self {
            Self::V3(namespace) | Self::V5(namespace) => Some(namespace.to_string()),
            _ => None,
        };
        let uuid = UuidSpec { version: Some(self.version()), namespace };
        SourceSpec { uuid: Some(uuid), ..SourceSpec::of(Kind::Uuid) }
    }
}
