// The runtime whose programs a recording is of, and how that is spoken of. Pure.

export interface Platform {
  /** Its name. */
  name: string;
  /** Its threads, as against those that it does not know. */
  threads: string;
}

const JVM: Platform = { name: 'JVM', threads: 'Java threads' };
const MONO: Platform = { name: 'Mono', threads: 'Mono’s threads' };

/** By the name that a recording has for it. */
export function platformOf(name: string): Platform {
  return /^Mono\b/.test(name) ? MONO : JVM;
}

/**
 * Beginnings of classes that come with a runtime: the JDK's, and .NET's class library. Mono
 * calls some as its language does; code that it makes itself, allocators and wrappers, is `object`'s. (Packages of Java begin with a
 * small letter, so a name of the one is none of the other.)
 */
export const OF_PLATFORM =
  /^(?:(?:java|jdk|sun|com\.sun|javax|System|Mono|Microsoft)\.|(?:bool|byte|char|double|u?int(?:16|ptr)?|u?long|object|sbyte|single|string)$)/;
