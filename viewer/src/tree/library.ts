// What a class belongs to by its name. Pure.

/** The JDK's packages, by their beginnings. */
const JDK = /^(?:java|javax|jdk|sun|com\.sun|org\.ietf|org\.w3c|org\.xml)\./;
/** Organisations with many libraries: the next part of the name identifies the library. */
const OWNERS =
  /^(?:org\.(?:apache|eclipse|jboss|springframework|glassfish)|com\.(?:google|fasterxml|github|amazonaws|microsoft)|io\.(?:github|quarkus|micronaut))\./;

/**
 * Library of a class, guessed from its name, for recordings without origins. Packages that begin
 * with the same two words are one library; three words are used if many packages share two.
 */
export function libraryOf(className: string): string {
  if (JDK.test(className)) return 'JDK';
  if (className.includes('.so') || className.startsWith('[')) return className;
  const words = className.split('.').slice(0, -1);
  if (words.length === 0) return '(no package)';
  return words.slice(0, OWNERS.test(className) ? 3 : 2).join('.');
}
