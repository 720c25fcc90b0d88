use super::*;

/// Its servers cannot report to this server until it was accepted.
#[tokio::test]
async fn a_store_in_doubt_on_another_server_needs_it_to_be_accepted() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.take_over(store.backup());
    let refused = Reports::repeated(&store, &ManualTimer::new(0)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert!(refused.to_string().contains("--other-server"), "{refused}");
    let seen = store.identity().await.unwrap();
    let refused = store.recall("a member", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
}

/// Only an operator who has stopped all servers knows that none uses the former server.
#[tokio::test]
async fn only_a_recovery_of_stopped_servers_accepts_a_replica() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.take_over(store.backup());
    let running = look(&store, &[], &[]).await.unwrap();
    let refused = store.fast_forward(&running.plan(&RecoveryRequest::default()).unwrap()).await;
    assert_eq!(refused.unwrap_err().kind().code(), "store_mismatch");
    let stopped = Reports::of_stopped(&store).await.unwrap();
    let stopped = look_with(&store, stopped, &[], &["a"]).await.unwrap();
    store.fast_forward(&stopped.plan(&RecoveryRequest::default()).unwrap()).await.unwrap();
    store.accept_lead(Mark::new(7)).await.unwrap();
}

/// The replica has all writes or lacks some. Of two operators, the one who looks first accepts it.
#[tokio::test]
async fn an_operator_accepts_a_server_that_took_over() {
    for loses in [false, true] {
        let store = MemoryStore::new("recovery").unwrap();
        let writer = store.handle("recovery").unwrap();
        store.report(&info("a"), None).await.unwrap();
        let mut replica = store.backup();
        writer.accept_lead(Mark::new(7)).await.unwrap();
        if !loses {
            replica = store.backup();
        }
        let seen = writer.identity().await.unwrap();
        store.take_over(replica);
        let refused = store.report(&info("a"), None).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
        assert_eq!(look(&store, &[], &[]).await.unwrap().doubt(), None);

        let before = Evidence::of_operator(store.standing().await.unwrap().id);
        accept_other_server(&store).await.unwrap();
        let after = store.standing().await.unwrap();
        assert!(after.doubt.is_some() && after.missing().count() == 1, "{after:?}");
        // A second operator has looked before, or looks now.
        let doubt = Doubt { evidence: "a member".into(), seen: 0, found: 0 };
        store.doubt(&doubt, &before).await.unwrap();
        accept_other_server(&store).await.unwrap();
        assert_eq!(store.standing().await.unwrap(), after);
        for handle in [&store, &writer] {
            let refused = handle.accept_lead(Mark::new(8)).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
        }
        assert!(look(&store, &[], &[]).await.unwrap().unsaid(&no_counters()).is_some());
        let known = Known { writes: seen.writes, ..Known::default() };
        store.report(&info("a"), Some(&known)).await.unwrap();
        recovered(&store).await.unwrap();
        let recalled = store.recall("a member", &seen).await.unwrap();
        assert_eq!(recalled == Recalled::Recovered, loses);
        store.accept_lead(Mark::new(8)).await.unwrap();
    }
}

#[tokio::test]
async fn server_that_wrote_store_is_not_accepted_again() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let before = (store.identity().await.unwrap(), store.standing().await.unwrap());
    accept_other_server(&store).await.unwrap();
    assert_eq!((store.identity().await.unwrap(), store.standing().await.unwrap()), before);
}

/// The handle's knowledge of its store decides, whatever an operator says.
#[tokio::test]
async fn a_server_with_another_store_is_not_accepted() {
    let (store, other) =
        (MemoryStore::new("recovery").unwrap(), MemoryStore::new("recovery").unwrap());
    let knows = store.handle("recovery").unwrap();
    knows.accept_lead(Mark::new(7)).await.unwrap();
    store.take_over(other.backup());
    let found = store.identity().await.unwrap();
    let refused = accept_other_server(&knows).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    let doubt = Doubt { evidence: "a member".into(), seen: 0, found: 0 };
    let refused = knows.doubt(&doubt, &Evidence::of_operator(found.id.clone())).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert_eq!(store.identity().await.unwrap(), found);
}

/// The former server may have been recovered, and its journals may know more by now.
#[tokio::test]
async fn reports_from_before_a_server_took_over_do_not_count() {
    let store = MemoryStore::new("recovery").unwrap();
    let known = Known { ends: [("numbers".to_owned(), 500)].into(), ..Known::default() };
    doubted(&store, 0).await;
    store.report(&info("a"), Some(&known)).await.unwrap();
    let replica = store.backup();
    recovered(&store).await.unwrap();
    store.take_over(replica);
    assert_eq!(look(&store, &[], &[]).await.unwrap().unsaid(&no_counters()), None);
    accept_other_server(&store).await.unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    assert!(found.unsaid(&no_counters()).is_some());
    assert_eq!(found.known(), Known::default());
}

/// Their reports may be as old, and only their own namespace's step can void them.
#[tokio::test]
async fn server_is_rejected_while_another_namespace_is_in_doubt() {
    let store = MemoryStore::new("recovery").unwrap();
    let other = store.handle("other").unwrap();
    other.report(&info("a"), None).await.unwrap();
    doubted(&store, 0).await;
    recovered(&store).await.unwrap();
    store.take_over(store.backup());
    let before = store.standing().await.unwrap();
    assert_eq!(before.others_in_doubt.to_string(), "other");
    let refused = accept_other_server(&store).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Conflict), "{refused}");
    for part in ["(other)", "snowmint worker fast-forward --namespace NAME"] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    assert_eq!(store.standing().await.unwrap(), before);
}
