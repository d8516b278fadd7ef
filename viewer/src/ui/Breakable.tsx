// A long name that goes on in the next line behind a mark that parts it, before anywhere else.

/** Behind these a name may be broken. */
const MARKS = /(?<=[./$])/u;

/** The parts of a name between which it is broken first. */
export function partsOfName(text: string): string[] {
  return text.split(MARKS);
}

export function Breakable({ text }: { text: string }) {
  return (
    <>{partsOfName(text).flatMap((part, at) => (at === 0 ? part : [<wbr key={at} />, part]))}</>
  );
}
