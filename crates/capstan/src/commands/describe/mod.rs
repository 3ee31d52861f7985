//! `capstan describe`.

mod draw;
mod paragraph;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anstream::ColorChoice;
use capstan_inspect::{
    clusters::ClusterError,
    describe::{self, DescribeOptions, DescribeReading, Node},
    snapshot::Watched,
};
use capstan_management::ManagementCluster;
use capstan_runtime::shell::stop_on_signal;
use futures::StreamExt;
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::mpsc, task::JoinSet, time};

use crate::{
    cli::{
        describe::{Describe, DescribeArgs, DescribeClusterArgs},
        generate::ListFormat,
        show_conditions::ShowConditions,
    },
    error::CommandError,
    management::Management,
    output,
    printer::{Output, Picture, Printer, Text},
};

/// Changes come in bunches: one look is enough for all that come within this time.
const BUNCH: Duration = Duration::from_millis(100);
/// How long to wait for a server that does not answer any more.
const RETRY: Duration = Duration::from_secs(2);
/// How often ages are redrawn.
const TICK: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: DescribeArgs, printer: Printer) -> Result<(), CommandError> {
    let Describe::Cluster(args) = args.what;
    choose_colours(args.color);
    let management = Management::open(&args.kubeconfig).await?;
    let view = View::of(&args, &management);
    if args.watch {
        return view.follow(printer).await;
    }
    let tree = view.tree(&view.read().await?);
    printer.print(&view.output(&tree))
}

/// A flag says more than the terminal, and the environment more than the flag.
fn choose_colours(flag: Option<bool>) {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    match flag {
        _ if is_refused => ColorChoice::Never.write_global(),
        Some(true) => ColorChoice::AlwaysAnsi.write_global(),
        Some(false) => ColorChoice::Never.write_global(),
        None => {}
    }
}

/// A Cluster as the user wants to see it.
struct View<'a> {
    cluster: &'a ManagementCluster,
    namespace: &'a str,
    name: &'a str,
    options: DescribeOptions,
    show: &'a ShowConditions,
    format: ListFormat,
}

impl<'a> View<'a> {
    fn of(args: &'a DescribeClusterArgs, management: &'a Management) -> Self {
        let namespace = args.namespace.as_deref().filter(|it| !it.is_empty());
        Self {
            cluster: management.cluster(),
            namespace: namespace.unwrap_or(&management.namespace),
            name: &args.name,
            options: args.options(),
            show: &args.show_conditions,
            format: args.output,
        }
    }

    async fn read(&self) -> Result<DescribeReading, ClusterError> {
        Box::pin(describe::read(self.cluster, self.namespace, self.name, &self.options)).await
    }

    fn tree(&self, reading: &DescribeReading) -> Node {
        describe::build(&reading.snapshot, &self.options)
    }

    fn output(&self, tree: &Node) -> Output {
        match self.format {
            ListFormat::Text => Output::Text(self.text(tree)),
            format => output::list(format, &describe::to_value(tree), || self.text(tree)),
        }
    }

    fn text(&self, tree: &Node) -> Text {
        draw::draw(tree, self.options.style, self.show, Timestamp::now())
    }

    /// Shows it again whenever it changes.
    async fn follow(&self, printer: Printer) -> Result<(), CommandError> {
        let stop = stop_on_signal().map_err(|error| CommandError::new("cannot listen for signals", error))?;
        let reading = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            reading = self.read() => reading?,
        };
        let mut changes = Changes::of(self.cluster.client());
        changes.also_of(&reading.watched);
        let mut tree = self.tree(&reading);
        let mut screen = Screen::open(printer, self.format);
        loop {
            for trouble in changes.troubles() {
                screen.warn(&trouble);
            }
            screen.show(&tree, || self.output(&tree))?;
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = screen.tick() => continue,
                () = changes.next() => {}
            }
            let reading = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                reading = self.read() => reading,
            };
            match reading {
                Ok(reading) => {
                    changes.also_of(&reading.watched);
                    tree = self.tree(&reading);
                }
                Err(ClusterError::NotFound { namespace, name, .. }) => {
                    printer.done(&format!("Cluster {namespace}/{name} was deleted"));
                    return Ok(());
                }
                Err(error) => {
                    screen.warn(&error.to_string());
                    changes.expect_within(RETRY);
                }
            }
        }
    }
}

/// Where the tree is drawn: in its own place on a terminal, one below the other elsewhere.
struct Screen {
    printer: Printer,
    format: ListFormat,
    picture: Picture,
    shown: Option<Node>,
}

impl Screen {
    fn open(printer: Printer, format: ListFormat) -> Self {
        Self { printer, format, picture: Picture::new(printer), shown: None }
    }

    fn is_live(&self) -> bool {
        self.printer.is_interactive() && self.format == ListFormat::Text
    }

    fn show(&mut self, tree: &Node, output: impl FnOnce() -> Output) -> Result<(), CommandError> {
        if self.is_live() {
            if let Output::Text(text) = output() {
                self.picture.draw(&text);
            }
            return Ok(());
        }
        // Ages change all the time; that alone is no news.
        if self.shown.as_ref() == Some(tree) {
            return Ok(());
        }
        let between = match (&self.shown, self.format) {
            (None, _) | (_, ListFormat::Json) => "",
            (_, ListFormat::Text) => "\n",
            (_, ListFormat::Yaml) => "---\n",
        };
        self.shown = Some(tree.clone());
        self.printer.data(between)?;
        self.printer.print(&output())
    }

    /// Prints a warning below the tree, which is then drawn below that.
    fn warn(&mut self, text: &str) {
        self.printer.warn(text);
        self.picture.leave();
    }

    async fn tick(&self) {
        if self.is_live() { time::sleep(TICK).await } else { std::future::pending().await }
    }
}

/// What a watch reports.
enum News {
    Change,
    Trouble(String),
}

/// Watches on everything that the tree is made of.
struct Changes {
    client: Client,
    watched: Vec<Watched>,
    known: Vec<String>,
    troubles: Vec<String>,
    is_due: bool,
    watches: JoinSet<()>,
    sender: mpsc::UnboundedSender<News>,
    receiver: mpsc::UnboundedReceiver<News>,
}

impl Changes {
    fn of(client: &Client) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            client: client.clone(),
            watched: Vec::new(),
            known: Vec::new(),
            troubles: Vec::new(),
            is_due: false,
            watches: JoinSet::new(),
            sender,
            receiver,
        }
    }

    /// Watches what is not watched yet.
    fn also_of(&mut self, watched: &[Watched]) {
        for one in watched {
            if !self.watched.contains(one) {
                self.watched.push(one.clone());
                self.watches.spawn(watch(self.client.clone(), one.clone(), self.sender.clone()));
            }
        }
    }

    /// Takes it for a change when this time has passed.
    fn expect_within(&mut self, time: Duration) {
        let sender = self.sender.clone();
        self.watches.spawn(async move {
            time::sleep(time).await;
            // The receiver is gone when the command has ended.
            let _ = sender.send(News::Change);
        });
    }

    /// Waits for a change, and for those that come with it. Cancelling the wait loses nothing.
    async fn next(&mut self) {
        while !self.is_due {
            let news = self.receiver.recv().await;
            self.hear(news);
        }
        time::sleep(BUNCH).await;
        while let Ok(news) = self.receiver.try_recv() {
            self.hear(Some(news));
        }
        self.is_due = false;
    }

    fn hear(&mut self, news: Option<News>) {
        match news {
            Some(News::Trouble(text)) if self.known.contains(&text) => {}
            Some(News::Trouble(text)) => {
                self.troubles.push(text.clone());
                self.known.push(text);
                self.is_due = true;
            }
            Some(News::Change) | None => self.is_due = true,
        }
    }

    /// What cannot be watched and why, each reported once.
    fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }
}

async fn watch(client: Client, watched: Watched, news: mpsc::UnboundedSender<News>) {
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::namespaced_with(client, &watched.namespace, &watched.resource);
    let config = match &watched.name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default().labels(&watched.label),
    };
    let mut events = watcher(api, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let report = match event {
            // What came between the look and the watch is in its first list.
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => News::Change,
            Ok(Event::Init | Event::InitApply(_)) => continue,
            Err(error) => News::Trouble(format!("cannot watch {}: {error}", watched.resource.plural)),
        };
        if news.send(report).is_err() {
            return;
        }
    }
}
