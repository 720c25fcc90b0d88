//! Definitions by programs: by any verb, they obey every rule of the server's own definitions.

use snowmint_coord::node::StoresChecked;
use snowmint_coord::{
    DefinedRoom, Definition, ErrorKind, Mark, NewDefinition, Restripe, SourceSpec, Store,
};
use tokio::sync::OwnedMutexGuard;

use super::target_store::TargetStore;
use crate::error::Error;
use crate::service::{NotDone, Service, SharedTurn};

/// Verb by which a definition is written.
#[derive(Clone, Copy)]
pub(crate) enum Writing {
    Define,
    Alter { if_version: Option<u64> },
    Restripe { if_version: u64, mark: Mark },
}

impl Writing {
    /// Returns its word in the audit trail.
    const fn name(self) -> &'static str {
        match self {
            Self::Define => "defined",
            Self::Alter { .. } => "altered",
            Self::Restripe { .. } => "restriped",
        }
    }

    /// Writes the definition. `looked_at`: the version that it must replace, if any.
    async fn write(
        self,
        store: &dyn Store,
        new: NewDefinition,
        looked_at: Option<u64>,
    ) -> snowmint_coord::Result<Definition> {
        match self {
            Self::Define => store.define(&new).await,
            Self::Alter { if_version } => store.alter(&new, if_version.or(looked_at)).await,
            Self::Restripe { if_version, mark } => {
                store.restripe(&Restripe { new, if_version, mark }).await
            }
        }
    }
}

impl TargetStore {
    /// Writes a definition by a program. Checks that the program may name the objects in it, that
    /// there is room, that its keys make it valid, and that it agrees with the other definitions.
    pub(crate) async fn writes(
        &self,
        (service, turn): (&Service, &SharedTurn),
        new: &NewDefinition,
        writing: Writing,
    ) -> Result<Definition, NotDone> {
        naming(service, &*self.store, (&new.name, &new.spec)).await?;
        let kept = new.kept();
        // A definition that this server cannot read may come only from an operator of the store.
        let written = match &kept {
            Ok(Some(kept)) => kept,
            _ => new,
        };
        let checked = self.check_stores((service, turn), written).await?;
        let _room = self.room_for(service, new).await?;
        let how = writing.name();
        let change = async {
            if let Err(error) = &kept {
                return Err(error.clone());
            }
            let looked_at = self.agrees(service, written, checked?).await?;
            writing.write(&*self.store, written.clone(), looked_at).await
        };
        Ok(self.change((service, how, new.name.as_str()), change).await?)
    }

    /// Counts a definition, and ensures room for it while the caller keeps the result.
    async fn room_for(
        &self,
        service: &Service,
        new: &NewDefinition,
    ) -> Result<Option<OwnedMutexGuard<()>>, NotDone> {
        service.spend_definition(&new.name).await?;
        // Unreadable keys make no queue.
        let spec = SourceSpec::from_stored(&new.spec).unwrap_or_default();
        let at = (self.secondary_store.as_str(), &*self.store);
        service.room_for(at, &DefinedRoom::of(&new.name, &spec)).await
    }

    /// Checks the list of stores in a definition of the server's own store, like a server's own.
    /// The check may call other stores, so it comes before the wait for room.
    async fn check_stores(
        &self,
        (service, turn): (&Service, &SharedTurn),
        new: &NewDefinition,
    ) -> Result<snowmint_coord::Result<StoresChecked>, Error> {
        match (self.secondary_store.as_str(), SourceSpec::from_stored(&new.spec)) {
            ("", Ok(spec)) => Ok(service.check_stores(turn, (&new.name, &spec)).await?),
            _ => Ok(Ok(StoresChecked::default())),
        }
    }

    /// Checks that a definition agrees with others of the server's own store, like a server's own.
    /// Returns the version that the check of its stores read, if the definition must replace it.
    async fn agrees(
        &self,
        service: &Service,
        new: &NewDefinition,
        checked: StoresChecked,
    ) -> snowmint_coord::Result<Option<u64>> {
        match self.secondary_store.as_str() {
            "" => service.agrees((&new.name, &new.spec), checked).await,
            _ => Ok(None),
        }
    }
}

/// Checks for a caller whose definition of a source names keys, stores or an upstream. A caller
/// needs no right to what the source names already: an error of the store leaves it unknown.
async fn naming(
    service: &Service,
    store: &dyn Store,
    (source, spec): (&str, &str),
) -> Result<(), NotDone> {
    if service.may_operate().is_ok() {
        return Ok(());
    }
    let before = match store.get(source).await {
        Ok(before) => Some(before.spec),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(service.may_name_in_text(before.as_deref(), spec)?)
}
