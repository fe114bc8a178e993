//! What a model is offered: schemas untouched, in the declared order (M2, A7, C7).

use beeuni_daemon::Door;
use beeuni_daemon::checkout::Folder;
use beeuni_harness::Tools as _;
use beeuni_manifest::Harness;
use beeuni_models::Api;

use crate::{module, stage, turn};

/// Nested definitions, references, alternatives, mixed enums, a vendor's key, keys in no sorted order.
const SCHEMA: &str = r##"{"type":"object","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"kind":{"oneOf":[{"const":"a"},{"type":["integer","null"],"minimum":-1.5}]}}}},"properties":{"zeta":{"$ref":"#/$defs/node"},"alpha":{"enum":[1,"1",null,true,0.1]},"mid":{"type":"string","pattern":"^\\p{L}+$","description":"ein Wörtchen 🐝"}},"required":["zeta"],"x-vendor":{"b":[],"a":{}},"additionalProperties":false}"##;

async fn m2_a_schema_arrives_as_it_was_written(api: Api) {
    let text = format!("export default {{ description: 'd', parameters: {SCHEMA}, execute() {{}} }}\n");
    let Some(stage) = stage(api, "tools: {odd: tools/odd.ts}\n", &[("odd", text)]) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    turn(&daemon, "beeuni", "SAY ok").await;
    assert_eq!(stage.model.requests()[0].schema("odd").as_deref(), Some(SCHEMA));
    daemon.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m2_a_schema_arrives_as_it_was_written_on_the_openai_wire() {
    m2_a_schema_arrives_as_it_was_written(Api::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m2_a_schema_arrives_as_it_was_written_on_the_anthropic_wire() {
    m2_a_schema_arrives_as_it_was_written(Api::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_offered_in_the_declared_order_whatever_loads_first() {
    let names = ["zulu", "mike", "alpha", "kilo"];
    let manifest: String = names.iter().map(|name| format!("  {name}: tools/{name}.ts\n")).collect();
    let slow = format!("await Bun.sleep(Math.random() * 60)\n{}", module("return 'ok'"));
    let modules = names.map(|name| (name, slow.clone()));
    let Some(stage) = stage(Api::OpenAi, &format!("tools:\n{manifest}"), &modules) else { return };
    let manifest = stage.manifest(&Folder::open(&stage.project.path()).unwrap());
    for start in 0..20 {
        let (door, _) = Door::open(stage.hosting(&manifest), manifest.clone(), Harness::Experimental, None)
            .await
            .unwrap();
        let offered: Vec<String> = door.list().into_iter().map(|tool| tool.name).collect();
        assert_eq!(offered, names, "start {start}");
    }
}
