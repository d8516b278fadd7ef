//! The application's own classes: those of the jar or folder of the main class, and of packages
//! that begin as its package does. Where the main class is a launcher or is not known, all classes
//! that are neither the platform's nor a known library's.

use dwell_profile::{NameId, Profile, is_of_platform};
use std::collections::BTreeSet;

/// Libraries that programs call, in addition to frameworks, by the beginnings of their packages.
const LIBRARIES: &[&str] = &[
    "ch.qos.",
    "clojure.",
    "com.clickhouse.",
    "com.datastax.",
    "com.esotericsoftware.",
    "com.fasterxml.",
    "com.github.benmanes.",
    "com.google.",
    "com.hazelcast.",
    "com.lmax.",
    "com.microsoft.sqlserver.",
    "com.mongodb.",
    "com.mysql.",
    "com.rabbitmq.",
    "com.zaxxer.",
    "freemarker.",
    "groovy.",
    "io.lettuce.",
    "jakarta.",
    "net.bytebuddy.",
    "okhttp3.",
    "okio.",
    "oracle.",
    "org.antlr.",
    "org.apache.",
    "org.bouncycastle.",
    "org.bson.",
    "org.codehaus.",
    "org.eclipse.",
    "org.elasticsearch.",
    "org.h2.",
    "org.hibernate.",
    "org.hsqldb.",
    "org.infinispan.",
    "org.jooq.",
    "org.mariadb.",
    "org.mozilla.",
    "org.mybatis.",
    "org.objectweb.",
    "org.postgresql.",
    "org.rocksdb.",
    "org.slf4j.",
    "org.sqlite.",
    "org.thymeleaf.",
    "org.yaml.",
    "redis.clients.",
];
/// Libraries that run the program's code or have threads of their own. Their users cannot change
/// what they do. Servers that are programs themselves are not listed.
const FRAMEWORKS: &[&str] = &[
    "akka.",
    "cats.effect.",
    "ch.qos.logback.",
    "com.google.common.",
    "com.zaxxer.hikari.",
    "io.grpc.",
    "io.micrometer.",
    "io.netty.",
    "io.opentelemetry.",
    "io.undertow.",
    "io.vertx.",
    "kotlin.",
    "kotlinx.",
    "monix.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.logging.",
    "org.apache.pekko.",
    "org.apache.tomcat.",
    "org.eclipse.jetty.",
    "org.glassfish.grizzly.",
    "org.jboss.",
    "org.springframework.",
    "org.xnio.",
    "reactor.",
    "rx.",
    "io.reactivex.",
    "scala.",
    "zio.",
];
/// A part of the package of a library that another one brings along.
const BROUGHT: [&str; 2] = [".shaded.", ".thirdparty."];
/// Owners of many projects: two words of a package are not one project's.
const OWNERS: [&str; 8] = [
    "com.github.",
    "com.google.",
    "io.github.",
    "org.apache.",
    "org.eclipse.",
    "org.jboss.",
    "org.springframework.",
    "org.codehaus.",
];

/// Known facts about the application.
struct Application {
    /// The beginning of its packages; empty: its classes have none.
    package: Option<String>,
    /// Its jar, or the folders of classes in that.
    libraries: Vec<NameId>,
}

/// By method: whether its class belongs to the application.
#[must_use]
pub fn own_methods(profile: &Profile) -> Vec<bool> {
    let names = profile.names();
    let classes = || profile.methods().iter().map(|it| names.text(it.class));
    if let Some(tool) = profile.tool() {
        let of: Vec<bool> = classes().map(|class| class.starts_with(&tool)).collect();
        if of.contains(&true) {
            return of;
        }
    }
    if let Some(application) = application(profile) {
        let of = profile.methods().iter().map(|method| {
            let class = names.text(method.class);
            is_class(class) && application.has(class, method.library)
        });
        let of: Vec<bool> = of.collect();
        if of.contains(&true) {
            return of;
        }
    }
    classes()
        .map(|class| is_class(class) && !is_of_library(class))
        .collect()
}

impl Application {
    fn has(&self, class: &str, library: Option<NameId>) -> bool {
        let has_start = match self.package.as_deref() {
            None => false,
            Some("") => !class.contains('.'),
            Some(package) => {
                let rest = class.strip_prefix(package);
                rest.is_some_and(|rest| rest.starts_with('.'))
            }
        };
        // A jar may have its libraries inside.
        let is_in_jar = library.is_some_and(|library| self.libraries.contains(&library));
        has_start || (is_in_jar && !is_of_library(class))
    }
}

/// The application, by the main class of the command line or by its jar.
fn application(profile: &Profile) -> Option<Application> {
    let main = profile.info().java_arguments.split_whitespace().next()?;
    let names = profile.names();
    if main.ends_with(".jar") {
        let file = main.rsplit('/').next().unwrap_or(main);
        // In a jar with nested jars, the classes are in a folder of it.
        let is_of_jar = |library: &NameId| {
            let rest = names.text(*library).strip_prefix(file);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("!/"))
        };
        let libraries = profile.methods().iter().filter_map(|it| it.library);
        let libraries: BTreeSet<NameId> = libraries.filter(is_of_jar).collect();
        return Some(Application {
            package: None,
            libraries: libraries.into_iter().collect(),
        });
    }
    // A module's main class.
    let main = main.rsplit('/').next().unwrap_or(main);
    if !is_class(main) || is_of_framework(main) {
        return None;
    }
    let mut of_main = profile.methods().iter();
    let of_main = of_main.find(|method| names.text(method.class) == main);
    Some(Application {
        package: Some(beginning(main)),
        libraries: of_main
            .and_then(|method| method.library)
            .into_iter()
            .collect(),
    })
}

/// The common beginning of a project's packages.
fn beginning(class: &str) -> String {
    let package = class.rsplit_once('.').map_or("", |(package, _)| package);
    let words = match OWNERS.iter().any(|owner| class.starts_with(owner)) {
        true => 3,
        false => 2,
    };
    package.split('.').take(words).collect::<Vec<_>>().join(".")
}

/// Whether it is a class of a program, and no native library.
fn is_class(class: &str) -> bool {
    let is_native = class.contains(".so") || class.starts_with('[');
    !class.is_empty() && !is_native && !is_of_platform(class)
}

/// Whether a class belongs to a library that runs the program's code or has threads of its own.
pub(crate) fn is_of_framework(class: &str) -> bool {
    let is_brought = BROUGHT.iter().any(|part| class.contains(part));
    is_brought || FRAMEWORKS.iter().any(|of| class.starts_with(of))
}

fn is_of_library(class: &str) -> bool {
    is_of_framework(class) || LIBRARIES.iter().any(|start| class.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, FrameKind};

    /// The classes that are the application's, of these with their libraries.
    fn own<'c>(main: &str, classes: &[(&'c str, &str)]) -> Vec<&'c str> {
        let mut builder = Builder::default();
        builder.info.java_arguments = main.to_owned();
        for (class, library) in classes {
            let library = (!library.is_empty()).then_some(*library);
            let method = builder.method_of(library, class, "m", "");
            builder.frame(method, 0, FrameKind::C2);
        }
        let own = own_methods(&builder.finish());
        let classes = classes.iter().zip(own).filter(|(_, is_own)| *is_own);
        classes.map(|((class, _), _)| *class).collect()
    }

    #[test]
    fn own_classes_are_in_the_jar_of_the_main_class() {
        let classes = [
            ("com.acme.shop.Main", "shop.jar"),
            ("com.acme.pay.Card", "pay.jar"),
            ("net.other.Tool", "shop.jar"),
            ("org.h2.Driver", "shop.jar"),
            ("net.lib.Part", "lib.jar"),
            ("java.util.HashMap", "java.base"),
        ];
        let expected = ["com.acme.shop.Main", "com.acme.pay.Card", "net.other.Tool"];
        assert_eq!(own("com.acme.shop.Main --port 80", &classes), expected);
        let of_jar = ["com.acme.shop.Main", "net.other.Tool"];
        assert_eq!(own("/opt/x/shop.jar", &classes), of_jar);
    }

    #[test]
    fn own_classes_of_a_tool_of_the_jdk_are_the_tools() {
        let classes = [
            ("com.sun.tools.javac.comp.Attr", "jdk.compiler"),
            ("com.sun.net.httpserver.HttpServer", "jdk.httpserver"),
            ("java.util.HashMap", "java.base"),
        ];
        let main = "jdk.compiler/com.sun.tools.javac.Main -d out A.java";
        assert_eq!(own(main, &classes), ["com.sun.tools.javac.comp.Attr"]);
    }

    #[test]
    fn own_classes_are_in_a_folder_of_a_jar_with_jars() {
        let classes = [
            ("org.springframework.boot.loader.Launcher", "app.jar"),
            ("shop.Orders", "app.jar!/BOOT-INF/classes"),
            ("net.lib.Part", "lib.jar"),
            ("shop.Old", "app.jar.old"),
        ];
        assert_eq!(own("app.jar", &classes), ["shop.Orders"]);
    }

    #[test]
    fn own_classes_without_a_package_are_those_of_the_main_class() {
        let classes = [("Main", ""), ("Main$Part", ""), ("org.h2.Driver", "")];
        assert_eq!(own("Main 8", &classes), ["Main", "Main$Part"]);
    }

    #[test]
    fn launcher_has_no_classes_of_the_application() {
        let classes = [
            ("shop.Orders", ""),
            ("org.apache.catalina.startup.Bootstrap", "bootstrap.jar"),
            ("org.h2.Driver", ""),
            ("libc.so.6", ""),
        ];
        let launcher = "org.apache.catalina.startup.Bootstrap start";
        for main in [launcher, "", "not.Sampled", "none.jar"] {
            assert_eq!(own(main, &classes), ["shop.Orders"], "{main}");
        }
    }

    #[test]
    fn owner_of_many_projects_is_not_one_application() {
        let classes = [
            ("org.apache.kafka.Server", ""),
            ("org.apache.zookeeper.Client", ""),
        ];
        let main = "org.apache.kafka.Kafka";
        assert_eq!(own(main, &classes), ["org.apache.kafka.Server"]);
    }
}
