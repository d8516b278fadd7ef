// Names of classes that the JVM and libraries generate, without what changes from run to run, so that
// all lambdas of a class are one. Pure.

const RULES: readonly [RegExp, string][] = [
  // a.B$$Lambda$71+0x00007f, a.B$$Lambda/0x0000, a.B$$Lambda$14/1234; the JDK's recorder writes .0x00
  // and .1234, also behind the former.
  [/\$\$Lambda(?:\$\d+)?(?:[+/](?:0x)?[0-9a-fA-F]+)?(?:\.(?:0x[0-9a-fA-F]+|\d+))?$/, ' (lambda)'],
  // Spring's and Hibernate's subclasses of the program's own classes.
  [/\$\$(?:EnhancerBy\w*|FastClassBy\w*|SpringCGLIB)\$\$[0-9a-fA-F]+$/, ' (generated)'],
  [/\$(?:ByteBuddy|HibernateProxy|MockitoMock)\$\w*$/, ' (generated)'],
  [/(LambdaForm\$D?MH)(?:\$\d+)?(?:[+/](?:0x)?[0-9a-fA-F]+|\.0x[0-9a-fA-F]+)?$/, '$1'],
  [/(Generated(?:Method|Constructor|SerializationConstructor)Accessor)\d+$/, '$1'],
  [/(\$Proxy)\d+$/, '$1'],
  // Hidden classes.
  [/[+/.]0x[0-9a-fA-F]+$/, ''],
];

/** The class's name as a reader knows it; most names are that already. */
export function readable(className: string): string {
  // Only generated names have one of these.
  if (!className.includes('$') && !className.includes('0x') && !className.includes('Generated')) {
    return className;
  }
  let text = className;
  for (const [pattern, instead] of RULES) text = text.replace(pattern, instead);
  return text;
}
