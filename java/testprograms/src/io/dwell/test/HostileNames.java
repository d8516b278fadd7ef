package io.dwell.test;

/** The names of {@link Hostile}, by item number. All are legal (JVMS 4.2.1 and 4.2.2). */
final class HostileNames {
    /** Longer than any reasonable buffer for a name. */
    private static final int LONG_NAME = 5000;
    /** A name may have 65535 bytes; {@link Hostile} puts five characters before it. */
    private static final int LONGEST_NAME = 65_500;

    private static final String[] THREADS = {
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "';alert(1);//",
        "&lt;b&gt; &amp; &#x41;",
        "<!-- --> ]]> <![CDATA[",
        "${7*7} {{7*7}} <%= 7*7 %>",
        "new\nline\r\nX-Injected: 1",
        "tab\tand\u0000nul",
        "\u001b[31mred \u001b[2J\u001b]0;title\u0007 \u009b31m",
        "\uD83D\uDD25 fire \uD83D\uDC68\u200D\uD83D\uDC69\u200D\uD83D\uDC67 family",
        "lone \uD83D surrogate \uDD25",
        "\u202Egnp.exe \u2066rtl\u2069 \u200B\uFEFF",
        "a;b;c 17",
        "  ",
        "",
        "=1+1",
        "$(touch pwned) `id` | cat /etc/passwd",
        "../../../../etc/passwd",
        "%s%n%x%p %00",
        "{\"json\": [1,2],}",
        "javascript:alert(1)",
        repeat("T", LONG_NAME),
        repeat("\uD83D\uDE00", LONG_NAME / 2),
        "__proto__",
        "constructor",
        "\u2028\u2029\u0085",
    };

    /** Internal names: slashes separate packages; no dots, semicolons or opening brackets. */
    private static final String[] CLASSES = {
        "</script><script>alert(1)</script>",
        "io/dwell/test/generated/<img src=x onerror=alert(1)>",
        "\"><svg onload=alert(1)>",
        "&lt&gt&amp&#x41",
        "<!--",
        "]]>",
        "line\nbreak/and\r\nX-Injected: 1",
        "tab\tand\u0000nul",
        "\u001bc\u009b31m",
        "\uD83D\uDD25/\uD83D\uDD25",
        "lone\uD83Dsurrogate",
        "\u202Eredro",
        "a b 17",
        " ",
        "-",
        "=1+1",
        "$(touch pwned)",
        "~",
        "%s%n%x%p",
        "{\"json\"}",
        "javascript:alert(1)",
        repeat("C", LONG_NAME),
        repeat("p/", LONG_NAME / 2) + "Deep",
        "__proto__",
        "constructor",
        "\u2028\u2029\u0085",
    };

    /** As class names, but without any of {@code / < >}. */
    private static final String[] METHODS = {
        "&lt&#60",
        "\" onmouseover=\"alert(1)",
        "' onmouseover='alert(1)",
        "line\nbreak",
        "\r\nX-Injected: 1",
        "tab\t",
        "nul\u0000",
        "\u001bc",
        "\u009b31m",
        "\uD83D\uDD25",
        "\uDD25\uD83D",
        "\u202Edohtem",
        "a b 17",
        " ",
        "back\\slash\\",
        "=1+1",
        "`id`",
        "(ILjava)V",
        "%s%n%x%p",
        "{\"json\": 1}",
        "javascript:alert(1)",
        repeat("m", LONG_NAME),
        repeat("M", LONGEST_NAME),
        "__proto__",
        "constructor",
        "\u2028\u2029\u0085",
    };

    private HostileNames() {}

    static int count() {
        return THREADS.length;
    }

    static String threadName(int item) {
        return THREADS[item];
    }

    static String className(int item) {
        return CLASSES[item];
    }

    static String methodName(int item) {
        return METHODS[item];
    }

    /** Names as the recording checker prints them: no spaces, control characters or non-ASCII. */
    static String escaped(String name) {
        if (name.isEmpty()) {
            return "(empty)";
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean plain = c < 128 && (Character.isLetterOrDigit(c) || "_.$-<>".indexOf(c) >= 0);
            text.append(plain ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        }
        return text.toString();
    }

    private static String repeat(String text, int times) {
        StringBuilder result = new StringBuilder(text.length() * times);
        for (int i = 0; i < times; i++) {
            result.append(text);
        }
        return result.toString();
    }
}
