use beeuni_child::{Spawner, Spec};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn says_how_it_ended() {
    let spawner = Spawner::start().unwrap();
    let mut spec = Spec::new("/bin/sh", "/");
    spec.args = vec!["-c".into(), "echo hi; exit 7".into()];
    let mut child = spawner.spawn(spec).await.unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    assert_eq!((out.as_str(), child.wait().await.to_string().as_str()), ("hi\n", "exited with code 7"));
}
