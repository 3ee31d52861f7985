//! English plurals as the contract computes them: those of the Go library flect v1.0.3.
//!
//! Core finds the CRD of a kind by its name, so what matters is not good English but the same answer
//! for every word, the odd ones included (`DNS` gives `dnsDNSes`).

/// How a word of the dictionary takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Also as the end of a longer word, and its plural is known to be a plural.
    Suffix,
    /// Also as the end of a longer word, but its plural is another word's plural too.
    OneWay,
    /// Only as a whole word.
    Whole,
}
use Scope::{OneWay, Suffix, Whole};

/// Singular, plural, and another plural that is left alone (or empty).
/// A later row beats an earlier one where a word ends in both.
const DICTIONARY: &[(&str, &str, &str, Scope)] = &[
    ("aircraft", "aircraft", "", Suffix),
    ("beef", "beef", "beefs", Suffix),
    ("bison", "bison", "", Suffix),
    ("blues", "blues", "", OneWay),
    ("chassis", "chassis", "", Suffix),
    ("deer", "deer", "", Suffix),
    ("fish", "fish", "fishes", Suffix),
    ("moose", "moose", "", Suffix),
    ("police", "police", "", Suffix),
    ("salmon", "salmon", "salmons", Suffix),
    ("series", "series", "", Suffix),
    ("sheep", "sheep", "", Suffix),
    ("shrimp", "shrimp", "shrimps", Suffix),
    ("species", "species", "", Suffix),
    ("swine", "swine", "swines", Suffix),
    ("trout", "trout", "trouts", Suffix),
    ("tuna", "tuna", "tunas", Suffix),
    ("you", "you", "", Suffix),
    ("child", "children", "", Suffix),
    ("ox", "oxen", "", Whole),
    ("foot", "feet", "", Suffix),
    ("goose", "geese", "", Suffix),
    ("man", "men", "", Suffix),
    ("human", "humans", "", Suffix),
    ("louse", "lice", "", Whole),
    ("mouse", "mice", "", Suffix),
    ("tooth", "teeth", "", Suffix),
    ("woman", "women", "", Suffix),
    ("die", "dice", "", Whole),
    ("person", "people", "", Suffix),
    ("adieu", "adieux", "adieus", Suffix),
    ("fabliau", "fabliaux", "", Suffix),
    ("bureau", "bureaus", "bureaux", Suffix),
    ("criterion", "criteria", "", Suffix),
    ("ganglion", "ganglia", "ganglions", Suffix),
    ("lexicon", "lexica", "lexicons", Suffix),
    ("mitochondrion", "mitochondria", "mitochondrions", Suffix),
    ("noumenon", "noumena", "", Suffix),
    ("phenomenon", "phenomena", "", Suffix),
    ("taxon", "taxa", "", Suffix),
    ("media", "media", "", Suffix),
    ("medium", "media", "", OneWay),
    ("stadium", "stadiums", "stadia", Suffix),
    ("aquarium", "aquaria", "aquariums", Suffix),
    ("auditorium", "auditoria", "auditoriums", Suffix),
    ("symposium", "symposia", "symposiums", Suffix),
    ("curriculum", "curriculums", "curricula", Suffix),
    ("quota", "quotas", "", Suffix),
    ("alumnus", "alumni", "alumnuses", Suffix),
    ("bacillus", "bacilli", "", Suffix),
    ("cactus", "cacti", "cactuses", Suffix),
    ("coccus", "cocci", "", Suffix),
    ("focus", "foci", "focuses", Suffix),
    ("locus", "loci", "locuses", Suffix),
    ("nucleus", "nuclei", "nucleuses", Suffix),
    ("octopus", "octupuses", "octopi", Suffix),
    ("radius", "radii", "radiuses", Suffix),
    ("syllabus", "syllabi", "", Suffix),
    ("corpus", "corpora", "corpuses", Suffix),
    ("genus", "genera", "", Suffix),
    ("alumna", "alumnae", "", Suffix),
    ("vertebra", "vertebrae", "", Suffix),
    ("differentia", "differentiae", "", Suffix),
    ("minutia", "minutiae", "", Suffix),
    ("vita", "vitae", "", Suffix),
    ("larva", "larvae", "", Suffix),
    ("postcava", "postcavae", "", Suffix),
    ("praecava", "praecavae", "", Suffix),
    ("uva", "uvae", "", Suffix),
    ("apex", "apices", "apexes", Suffix),
    ("codex", "codices", "codexes", Suffix),
    ("index", "indices", "indexes", Suffix),
    ("latex", "latices", "latexes", Suffix),
    ("vertex", "vertices", "vertexes", Suffix),
    ("vortex", "vortices", "vortexes", Suffix),
    ("appendix", "appendices", "appendixes", Suffix),
    ("radix", "radices", "radixes", Suffix),
    ("helix", "helices", "helixes", Suffix),
    ("axis", "axes", "", Whole),
    ("crisis", "crises", "", Suffix),
    ("ellipsis", "ellipses", "", OneWay),
    ("genesis", "geneses", "", Suffix),
    ("oasis", "oases", "", Suffix),
    ("thesis", "theses", "", Suffix),
    ("testis", "testes", "", Suffix),
    ("base", "bases", "", Suffix),
    ("basis", "bases", "", OneWay),
    ("alias", "aliases", "", Whole),
    ("vedalia", "vedalias", "", Suffix),
    ("use", "uses", "", Whole),
    ("abuse", "abuses", "", Suffix),
    ("cause", "causes", "", Suffix),
    ("clause", "clauses", "", Suffix),
    ("cruse", "cruses", "", Suffix),
    ("excuse", "excuses", "", Suffix),
    ("fuse", "fuses", "", Suffix),
    ("house", "houses", "", Suffix),
    ("misuse", "misuses", "", Suffix),
    ("muse", "muses", "", Suffix),
    ("pause", "pauses", "", Suffix),
    ("ache", "aches", "", Suffix),
    ("topaz", "topazes", "", Suffix),
    ("buffalo", "buffaloes", "buffalos", Suffix),
    ("potato", "potatoes", "", Suffix),
    ("tomato", "tomatoes", "", Suffix),
    ("equipment", "equipment", "", Suffix),
    ("information", "information", "", Suffix),
    ("jeans", "jeans", "", Suffix),
    ("money", "money", "", Suffix),
    ("news", "news", "", Suffix),
    ("rice", "rice", "", Suffix),
    ("dwarf", "dwarfs", "dwarves", Suffix),
    ("hoof", "hoofs", "hooves", Suffix),
    ("thief", "thieves", "", Suffix),
    ("chive", "chives", "", Suffix),
    ("hive", "hives", "", Suffix),
    ("move", "moves", "", Suffix),
    ("movie", "movies", "", Suffix),
    ("cookie", "cookies", "", Suffix),
    ("pretorium", "pretoriums", "", Suffix),
    ("agenda", "agendas", "", Suffix),
    ("formula", "formulas", "formulae", Suffix),
    ("shoe", "shoes", "", Suffix),
    ("toe", "toes", "", Whole),
    ("graffiti", "graffiti", "", Suffix),
    ("ID", "IDs", "", Whole),
];

/// Endings and what becomes of them; the first that fits is taken. A word that already has the plural
/// ending of a row stays as it is.
const ENDINGS: &[(&str, &str)] = &[
    // -f and -fe
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("afe", "aves"),
    ("arf", "arves"),
    ("rfe", "rves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    // -y
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    // French
    ("eau", "eaux"),
    // Latin -ula: four rows are wrong in the library, and stay so here
    ("bula", "bulae"),
    ("dula", "bulae"),
    ("lula", "bulae"),
    ("nula", "bulae"),
    ("vula", "bulae"),
    // Greek -on, Latin -um
    ("hedron", "hedra"),
    ("ium", "ia"),
    ("seum", "seums"),
    ("eum", "ea"),
    ("oum", "oa"),
    ("stracum", "straca"),
    ("dum", "da"),
    ("elum", "ela"),
    ("ilum", "ila"),
    ("olum", "ola"),
    ("ulum", "ula"),
    ("llum", "lla"),
    ("ylum", "yla"),
    ("imum", "ima"),
    ("ernum", "erna"),
    ("gnum", "gna"),
    ("brum", "bra"),
    ("crum", "cra"),
    ("terum", "tera"),
    ("serum", "sera"),
    ("trum", "tra"),
    ("antum", "anta"),
    ("atum", "ata"),
    ("entum", "enta"),
    ("etum", "eta"),
    ("itum", "ita"),
    ("otum", "ota"),
    ("utum", "uta"),
    ("ctum", "cta"),
    ("ovum", "ova"),
    // Latin -ix, Greek -is
    ("trix", "trices"),
    ("iasis", "iases"),
    ("mesis", "meses"),
    ("kinesis", "kineses"),
    ("resis", "reses"),
    ("gnosis", "gnoses"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    // Hissing sounds and -o
    ("ouse", "ouses"),
    ("lause", "lauses"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("ano", "anos"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
    // Abbreviations
    ("S", "Ses"),
];

/// Words that are taken to be in capitals however they are written.
#[rustfmt::skip]
const ACRONYMS: &[&str] = &[
    "ACK", "ACL", "ADSL", "AES", "ANSI", "API", "ARP", "ATM", "BGP", "BSS", "CCITT", "CHAP", "CIDR", "CIR", "CLI",
    "CMOS", "CPE", "CPU", "CRC", "CRT", "CSMA", "DCE", "DEC", "DES", "DHCP", "DMI", "DNS", "DRAM", "DSL", "DSLAM",
    "DTE", "EHA", "EIA", "EIGRP", "EOF", "ESS", "FCC", "FCS", "FDDI", "FTP", "GBIC", "GEPOF", "HDLC", "HTML",
    "HTTP", "HTTPS", "IANA", "ICMP", "ID", "IDF", "IDS", "IEEE", "IETF", "IMAP", "IP", "IPS", "ISDN", "ISP", "JSON",
    "JWT", "LACP", "LAN", "LAPB", "LAPF", "LLC", "MAC", "MC", "MDF", "MIB", "MPLS", "MTU", "NAC", "NAT", "NBMA",
    "NIC", "NRZ", "NRZI", "NVRAM", "OK", "OSI", "OSPF", "OUI", "PAP", "PAT", "PC", "PCM", "PDU", "PIM", "POP3",
    "POTS", "PPP", "PPTP", "PTT", "PVST", "RAM", "RARP", "RCP", "RFC", "RIP", "RLL", "ROM", "RSTP", "RTP", "SDLC",
    "SFD", "SFP", "SLARP", "SLIP", "SMTP", "SNA", "SNAP", "SNMP", "SOF", "SQL", "SRAM", "SSH", "SSID", "STP", "SYN",
    "TDM", "TFTP", "TIA", "TOFU", "UDP", "URI", "URL", "USB", "UTF8", "UTP", "UUID", "VC", "VLAN", "VLSM", "VPN",
    "W3C", "WAN", "WEP", "WPA", "WWW",
];

/// The plural of a word: of a kind as it is written, or in lower case as in the name of its CRD.
pub fn pluralize(word: &str) -> String {
    let last = last_part(word);
    if last.is_empty() {
        return String::new();
    }
    if let Some(plural) = irregular_plural(word) {
        return plural.to_owned();
    }
    let lower = last.to_lowercase();
    if is_irregular_plural(word) || is_irregular_plural(&lower) {
        return word.to_owned();
    }
    // Where the part was put in capitals the word does not end in it, and the plural is put behind the word.
    let with_ending = |plural: &str| format!("{}{plural}", word.strip_suffix(last.as_str()).unwrap_or(word));
    if let Some(plural) = irregular_plural(&lower) {
        return if capitalized(&last) == last {
            with_ending(&capitalized(plural))
        } else {
            with_ending(plural)
        };
    }
    let of_compounds = DICTIONARY
        .iter()
        .rev()
        .filter(|(.., scope)| *scope != Whole)
        .map(|(singular, plural, ..)| (*singular, *plural));
    for (singular, plural) in of_compounds.chain(ENDINGS.iter().copied()) {
        if last.ends_with(plural) {
            return with_ending(&last);
        }
        if let Some(stem) = last.strip_suffix(singular) {
            return with_ending(&format!("{stem}{plural}"));
        }
    }
    if lower.ends_with('s') { word.to_owned() } else { format!("{word}s") }
}

fn irregular_plural(word: &str) -> Option<&'static str> {
    DICTIONARY.iter().find(|(singular, ..)| *singular == word).map(|(_, plural, ..)| *plural)
}

fn is_irregular_plural(word: &str) -> bool {
    DICTIONARY.iter().any(|(_, plural, other, scope)| *scope != OneWay && (*plural == word || *other == word))
}

fn is_acronym(word: &str) -> bool {
    ACRONYMS.iter().any(|acronym| acronym.eq_ignore_ascii_case(word))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The last of the parts that separators and capitals split a word into.
fn last_part(word: &str) -> String {
    let mut last = String::new();
    let mut keep = |part: &str| {
        let part = part
            .trim()
            .trim_matches('_')
            .trim_matches(' ')
            .trim_matches(':')
            .trim_matches('-')
            .trim_matches('/');
        if !part.is_empty() {
            last = if is_acronym(part) { part.to_uppercase() } else { part.to_owned() };
        }
    };
    let word = word.trim();
    if is_acronym(word) {
        return word.to_uppercase();
    }
    let mut part = String::new();
    let mut follows_capital = false;
    for letter in word.chars() {
        let is_separator = matches!(letter, '_' | ' ' | ':' | '-' | '/') || letter.is_whitespace();
        let begins_part = letter.is_uppercase() && (!follows_capital || is_acronym(&part));
        if is_separator || begins_part {
            keep(&part);
            part.clear();
        } else if !letter.is_alphanumeric() && (!letter.is_ascii_punctuation() || is_symbol(letter)) {
            keep(&part);
            part.clear();
            follows_capital = false;
            continue;
        }
        part.push(letter);
        follows_capital = letter.is_uppercase();
    }
    keep(&part);
    last
}

/// The signs of ASCII that Unicode does not call punctuation; the library spares the back quote.
const fn is_symbol(letter: char) -> bool {
    matches!(letter, '$' | '+' | '<' | '=' | '>' | '^' | '|' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What flect says: kinds found in the wild (as in the names of their CRDs), words that try each rule,
    /// and kinds as they are written in messages.
    #[rustfmt::skip]
    const PLURALS: &[(&str, &str)] = &[
        ("cluster", "clusters"), ("clusterclass", "clusterclasses"), ("machine", "machines"),
        ("machinedeployment", "machinedeployments"), ("machineset", "machinesets"),
        ("machinepool", "machinepools"), ("machinehealthcheck", "machinehealthchecks"),
        ("machinedrainrule", "machinedrainrules"), ("clusterresourceset", "clusterresourcesets"),
        ("clusterresourcesetbinding", "clusterresourcesetbindings"),
        ("extensionconfig", "extensionconfigs"), ("ipaddress", "ipaddresses"),
        ("ipaddressclaim", "ipaddressclaims"), ("kubeadmconfig", "kubeadmconfigs"),
        ("kubeadmconfigtemplate", "kubeadmconfigtemplates"),
        ("kubeadmcontrolplane", "kubeadmcontrolplanes"),
        ("kubeadmcontrolplanetemplate", "kubeadmcontrolplanetemplates"), ("provider", "providers"),
        ("coreprovider", "coreproviders"), ("infrastructureprovider", "infrastructureproviders"),
        ("dockercluster", "dockerclusters"), ("dockermachinepool", "dockermachinepools"),
        ("devcluster", "devclusters"), ("devmachine", "devmachines"), ("localcluster", "localclusters"),
        ("localclustertemplate", "localclustertemplates"), ("awscluster", "awsclusters"),
        ("awsclustercontrolleridentity", "awsclustercontrolleridentities"),
        ("awsclusterstaticidentity", "awsclusterstaticidentities"), ("awsmachine", "awsmachines"),
        ("awsmanagedcontrolplane", "awsmanagedcontrolplanes"),
        ("awsfargateprofile", "awsfargateprofiles"), ("eksconfig", "eksconfigs"),
        ("rosacluster", "rosaclusters"), ("rosanetwork", "rosanetworks"),
        ("azurecluster", "azureclusters"), ("azureclusteridentity", "azureclusteridentities"),
        ("azuremanagedcluster", "azuremanagedclusters"),
        ("azureasomanagedcontrolplane", "azureasomanagedcontrolplanes"), ("gcpcluster", "gcpclusters"),
        ("gcpmanagedcontrolplane", "gcpmanagedcontrolplanes"), ("vspherecluster", "vsphereclusters"),
        ("vspherevm", "vspherevms"), ("vspheredeploymentzone", "vspheredeploymentzones"),
        ("vspherefailuredomain", "vspherefailuredomains"), ("openstackcluster", "openstackclusters"),
        ("openstackfloatingippool", "openstackfloatingippools"), ("openstackserver", "openstackservers"),
        ("metal3cluster", "metal3clusters"), ("metal3data", "metal3data"),
        ("metal3dataclaim", "metal3dataclaims"), ("metal3datatemplate", "metal3datatemplates"),
        ("metal3remediation", "metal3remediations"), ("baremetalhost", "baremetalhosts"),
        ("hostfirmwaresettings", "hostfirmwaresettings"), ("firmwareschema", "firmwareschemas"),
        ("ippool", "ippools"), ("inclusterippool", "inclusterippools"),
        ("globalinclusterippool", "globalinclusterippools"), ("packetcluster", "packetclusters"),
        ("hetznerbaremetalhost", "hetznerbaremetalhosts"), ("hcloudmachine", "hcloudmachines"),
        ("nutanixcluster", "nutanixclusters"), ("nutanixfailuredomain", "nutanixfailuredomains"),
        ("proxmoxcluster", "proxmoxclusters"), ("proxmoxmachine", "proxmoxmachines"),
        ("kubevirtcluster", "kubevirtclusters"), ("ibmpowervscluster", "ibmpowervsclusters"),
        ("ibmvpcmachine", "ibmvpcmachines"), ("linodevpc", "linodevpcs"),
        ("linodefirewall", "linodefirewalls"),
        ("linodeobjectstoragebucket", "linodeobjectstoragebuckets"),
        ("cloudstackaffinitygroup", "cloudstackaffinitygroups"),
        ("cloudstackisolatednetwork", "cloudstackisolatednetworks"),
        ("cloudstackzone", "cloudstackzones"), ("ocivirtualmachinepool", "ocivirtualmachinepools"),
        ("tinkerbellcluster", "tinkerbellclusters"), ("talosconfig", "talosconfigs"),
        ("taloscontrolplane", "taloscontrolplanes"), ("rke2config", "rke2configs"),
        ("rke2controlplane", "rke2controlplanes"), ("k0scontrolplane", "k0scontrolplanes"),
        ("kthreesconfig", "kthreesconfigs"), ("microk8scontrolplane", "microk8scontrolplanes"),
        ("helmchartproxy", "helmchartproxies"), ("helmreleaseproxy", "helmreleaseproxies"),
        ("kubevirtmachine", "kubevirtmachines"), ("byohost", "byohosts"),
        ("vclustercontrol", "vclustercontrols"), ("kairos", "kairos"), ("pod", "pods"),
        ("service", "services"), ("endpoints", "endpoints"), ("node", "nodes"),
        ("namespace", "namespaces"), ("ingress", "ingresses"), ("ingressclass", "ingressclasses"),
        ("storageclass", "storageclasses"), ("priorityclass", "priorityclasses"),
        ("runtimeclass", "runtimeclasses"), ("gatewayclass", "gatewayclasses"), ("gateway", "gateways"),
        ("httproute", "httproutes"), ("grpcroute", "grpcroutes"), ("tlsroute", "tlsroutes"),
        ("referencegrant", "referencegrants"), ("backendtlspolicy", "backendtlspolicies"),
        ("networkpolicy", "networkpolicies"), ("poddisruptionbudget", "poddisruptionbudgets"),
        ("podsecuritypolicy", "podsecuritypolicies"), ("resourcequota", "resourcequotas"),
        ("limitrange", "limitranges"), ("csidriver", "csidrivers"), ("csinode", "csinodes"),
        ("volumeattachment", "volumeattachments"), ("lease", "leases"), ("event", "events"),
        ("endpointslice", "endpointslices"), ("flowschema", "flowschemas"),
        ("validatingadmissionpolicy", "validatingadmissionpolicies"),
        ("validatingadmissionpolicybinding", "validatingadmissionpolicybindings"),
        ("certificatesigningrequest", "certificatesigningrequests"),
        ("customresourcedefinition", "customresourcedefinitions"), ("apiservice", "apiservices"),
        ("componentstatus", "componentstatuses"), ("replicaset", "replicasets"),
        ("daemonset", "daemonsets"), ("statefulset", "statefulsets"), ("cronjob", "cronjobs"),
        ("horizontalpodautoscaler", "horizontalpodautoscalers"), ("certificate", "certificates"),
        ("issuer", "issuers"), ("clusterissuer", "clusterissuers"), ("order", "orders"),
        ("challenge", "challenges"), ("kibana", "kibanas"), ("elasticsearch", "elasticsearches"),
        ("prometheus", "prometheuses"), ("alertmanager", "alertmanagers"),
        ("servicemonitor", "servicemonitors"), ("prometheusrule", "prometheusrules"),
        ("thanosruler", "thanosrulers"), ("kafka", "kafkas"), ("kafkatopic", "kafkatopics"),
        ("redis", "redis"), ("rediscluster", "redisclusters"), ("postgres", "postgres"),
        ("mysql", "mysqls"), ("mongodb", "mongodbs"), ("etcd", "etcds"), ("jaeger", "jaegers"),
        ("kustomization", "kustomizations"), ("helmrelease", "helmreleases"),
        ("gitrepository", "gitrepositories"), ("bucket", "buckets"),
        ("ocirepository", "ocirepositories"), ("alert", "alerts"), ("receiver", "receivers"),
        ("canary", "canaries"), ("appproject", "appprojects"), ("application", "applications"),
        ("virtualservice", "virtualservices"), ("destinationrule", "destinationrules"),
        ("sidecar", "sidecars"), ("authorizationpolicy", "authorizationpolicies"),
        ("telemetry", "telemetries"), ("envoyfilter", "envoyfilters"), ("broker", "brokers"),
        ("trigger", "triggers"), ("channel", "channels"), ("subscription", "subscriptions"),
        ("sequence", "sequences"), ("parallel", "parallels"), ("knativeserving", "knativeservings"),
        ("task", "tasks"), ("pipeline", "pipelines"), ("pipelinerun", "pipelineruns"),
        ("proxy", "proxies"), ("dns", "dnsDNSes"), ("dnsrecord", "dnsrecords"), ("oauth", "oauths"),
        ("infrastructure", "infrastructures"), ("featuregate", "featuregates"), ("console", "consoles"),
        ("clusterversion", "clusterversions"), ("scheduler", "schedulers"), ("build", "builds"),
        ("network", "networks"), ("authentication", "authentications"), ("id", "ids"), ("url", "urls"),
        ("ip", "ips"), ("ids", "idsIDSes"), ("ips", "ipsIPSes"), ("https", "httpsHTTPSes"),
        ("aes", "aesAESes"), ("mpls", "mplsMPLSes"), ("api", "apis"), ("vpn", "vpns"), ("uuid", "uuids"),
        ("json", "jsons"), ("sql", "sqls"), ("acl", "acls"), ("nic", "nics"), ("ram", "rams"),
        ("index", "indices"), ("indices", "indices"), ("indexes", "indexes"), ("vertex", "vertices"),
        ("matrix", "matrices"), ("appendix", "appendices"), ("suffix", "suffixes"), ("mutex", "mutexes"),
        ("box", "boxes"), ("fix", "fixes"), ("helix", "helices"), ("complex", "complexes"),
        ("policy", "policies"), ("entry", "entries"), ("day", "days"), ("key", "keys"), ("boy", "boys"),
        ("survey", "surveys"), ("soliloquy", "soliloquies"), ("query", "queries"), ("money", "money"),
        ("bus", "buses"), ("status", "statuses"), ("virus", "viruses"), ("census", "censuses"),
        ("campus", "campuses"), ("campuses", "campuses"), ("radius", "radii"), ("focus", "foci"),
        ("nucleus", "nuclei"), ("cactus", "cacti"), ("corpus", "corpora"), ("genus", "genera"),
        ("alias", "aliases"), ("aliases", "aliases"), ("class", "classes"), ("process", "processes"),
        ("access", "accesses"), ("address", "addresses"), ("mesh", "meshes"), ("hash", "hashes"),
        ("batch", "batches"), ("patch", "patches"), ("match", "matches"), ("branch", "branches"),
        ("crash", "crashes"), ("quiz", "quizzes"), ("fez", "fezzes"), ("blitz", "blitzes"),
        ("buzz", "buzzes"), ("topaz", "topazes"), ("waltz", "waltzes"), ("leaf", "leaves"),
        ("shelf", "shelves"), ("half", "halves"), ("wolf", "wolves"), ("knife", "knives"),
        ("life", "lives"), ("wife", "wives"), ("safe", "saves"), ("proof", "proofs"), ("roof", "roofs"),
        ("thief", "thieves"), ("chief", "chiefs"), ("dwarf", "dwarfs"), ("scarf", "scarves"),
        ("hero", "heroes"), ("echo", "echoes"), ("photo", "photos"), ("piano", "pianos"),
        ("silo", "silos"), ("cello", "cellos"), ("auto", "autos"), ("veto", "vetos"),
        ("video", "videoes"), ("studio", "studios"), ("ratio", "ratios"), ("zoo", "zoos"),
        ("bamboo", "bamboos"), ("potato", "potatoes"), ("tomato", "tomatoes"), ("buffalo", "buffaloes"),
        ("logo", "logoes"), ("memo", "memoes"), ("person", "people"), ("people", "people"),
        ("child", "children"), ("man", "men"), ("woman", "women"), ("human", "humans"),
        ("policeman", "policemen"), ("talisman", "talismen"), ("mouse", "mice"), ("house", "houses"),
        ("louse", "lice"), ("warehouse", "warehouses"), ("foot", "feet"), ("tooth", "teeth"),
        ("goose", "geese"), ("moose", "moose"), ("analysis", "analyses"), ("basis", "bases"),
        ("base", "bases"), ("database", "databases"), ("crisis", "crises"), ("thesis", "theses"),
        ("hypothesis", "hypotheses"), ("diagnosis", "diagnoses"), ("axis", "axes"), ("oasis", "oases"),
        ("emphasis", "emphasis"), ("synopsis", "synopses"), ("datum", "data"), ("data", "data"),
        ("medium", "media"), ("media", "media"), ("stadium", "stadiums"), ("museum", "museums"),
        ("forum", "forums"), ("album", "albums"), ("minimum", "minima"), ("maximum", "maxima"),
        ("curriculum", "curriculums"), ("spectrum", "spectra"), ("quorum", "quorums"),
        ("premium", "premia"), ("criterion", "criteria"), ("phenomenon", "phenomena"),
        ("lexicon", "lexica"), ("polyhedron", "polyhedra"), ("taxon", "taxa"), ("series", "series"),
        ("species", "species"), ("news", "news"), ("information", "information"),
        ("equipment", "equipment"), ("chassis", "chassis"), ("deer", "deer"), ("sheep", "sheep"),
        ("fish", "fish"), ("aircraft", "aircraft"), ("rice", "rice"), ("jeans", "jeans"),
        ("quota", "quotas"), ("agenda", "agendas"), ("formula", "formulas"), ("schema", "schemas"),
        ("alumna", "alumnae"), ("vita", "vitae"), ("larva", "larvae"), ("nebula", "nebulae"),
        ("fibula", "fibulae"), ("uvula", "ubulae"), ("move", "moves"), ("movie", "movies"),
        ("cookie", "cookies"), ("hive", "hives"), ("archive", "archives"), ("directive", "directives"),
        ("native", "natives"), ("cause", "causes"), ("clause", "clauses"), ("use", "uses"),
        ("pause", "pauses"), ("cache", "caches"), ("axe", "axes"), ("bureau", "bureaus"),
        ("plateau", "plateaux"), ("gas", "gas"), ("lens", "lens"), ("canvas", "canvas"),
        ("kubernetes", "kubernetes"), ("settings", "settings"), ("details", "details"), ("x", "xes"),
        ("s", "s"), ("y", "ies"), ("o", "oes"), ("ox", "oxen"), ("die", "dice"), ("toe", "toes"),
        ("shoe", "shoes"), ("a", "as"), ("ss", "sses"), ("us", "uses"), ("Index", "Indices"),
        ("MyIndex", "MyIndices"), ("DNS", "DNSes"), ("MachineDNS", "MachineDNSes"), ("Url", "Urls"),
        ("ServerURL", "ServerURLs"), ("SSID", "SSIDs"), ("LANS", "LANSes"), ("IP", "IPs"),
        ("FloatingIP", "FloatingIPs"), ("Policy", "Policies"), ("PersonPolicy", "PersonPolicies"),
        ("House", "Houses"), ("myHouse", "myHouses"), ("foo-index", "foo-indices"),
        ("foo_person", "foo_people"), ("a b index", "a b indices"), ("k8s", "k8s"),
        ("Phase3Obj", "Phase3Objs"), ("", ""), ("-", ""), ("Media", "Media"), ("Medium", "Media"),
        ("ID", "IDs"), ("MachineID", "MachineIDs"), ("GatewayClass", "GatewayClasses"),
        ("MachineDeployment", "MachineDeployments"), ("MachineSet", "MachineSets"),
        ("MachinePool", "MachinePools"), ("Machine", "Machines"),
    ];

    #[test]
    fn plurals_are_those_of_flect() {
        for (word, plural) in PLURALS {
            assert_eq!(pluralize(word), *plural, "the plural of {word:?}");
        }
    }

    #[test]
    fn the_plural_of_a_listed_plural_is_itself() {
        for (_, plural, other, scope) in DICTIONARY {
            if *scope != OneWay {
                assert_eq!(pluralize(plural), *plural);
                assert_eq!(pluralize(other), *other);
            }
        }
    }
}
