//! Secrets stay out of the log and of reasons; arguments and results too.

use crate::{eventually, ok, room, tool};

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_no_log_and_no_reason() {
    let Some(room) = room() else { return };
    let secret = "s3cr3t-XYZ";
    room.host.set_secrets([secret.to_owned()]);
    let body = "console.log('out', args.s); console.error('err', args.s); setTimeout(() => { throw new Error('late ' + args.s) }, 1); \
        if (args.fail) throw new Error(args.s); return args.s";
    let report = room
        .load(&[
            ("t", tool(body)),
            ("bad", format!("console.log('{secret}'); throw new Error('at import {secret}')")),
        ])
        .await;
    assert_eq!(report.failed[0].reason, "at import [secret]");
    let arguments = format!("{{\"s\":\"{secret}\",\"body\":\"plain-argument\"}}");
    assert_eq!(room.call("t", &arguments).await, ok(secret), "the model gets what the tool returns");
    let failing = format!("{{\"s\":\"{secret}\",\"fail\":true}}");
    assert_eq!(room.call("t", &failing).await.unwrap_err().to_string(), secret);
    eventually("all is logged", || {
        ["t: out [secret]", "t: err [secret]", "t: outside any call: late [secret]"]
            .iter()
            .all(|text| room.has_logged(text))
    })
    .await;
    assert!(!room.has_logged(secret) && !room.has_logged("plain-argument"), "{}", room.log.all());
}
