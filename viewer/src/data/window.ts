// Which part of an event belongs to a part of the time: the twin of crates/profile/src/extent.rs.
// All views by time take it from here. Pure.
import type { Span } from './profile';

/** The part of an event that lies before a time, from 0 to 1: it lies evenly over its duration. */
export function shareBefore(time: number, duration: number, at: number): number {
  if (duration <= 0) return at > time ? 1 : 0;
  return Math.max(0, Math.min(1, (at - time) / duration));
}

/**
 * How much of an event is in a part of the time: as much as the overlap has of the duration. One
 * without a duration is in it or not; the beginning belongs to a part, the end does not.
 */
export function shareIn(time: number, duration: number, during: Span | null): number {
  if (!during) return 1;
  return shareBefore(time, duration, during.to) - shareBefore(time, duration, during.from);
}

/**
 * The same for an integer of an event (time, bytes, samples). Both ends are rounded separately, so
 * adjacent parts add up to the whole.
 */
export function partIn(
  amount: number,
  time: number,
  duration: number,
  during: Span | null,
): number {
  if (!during) return amount;
  const until = (at: number) => Math.round(amount * shareBefore(time, duration, at));
  return Math.max(0, until(during.to) - until(during.from));
}

/**
 * The range between two times in either order, within the recording; null: no part of the
 * recording is in it.
 */
export function rangeBetween(a: number, b: number, whole: Span): Span | null {
  const from = Math.max(whole.from, Math.min(a, b));
  const to = Math.min(whole.to, Math.max(a, b));
  return from < to ? { from, to } : null;
}

/** Whether an instant is in a part of the time. */
export function hasInstant(time: number, during: Span | null): boolean {
  return shareIn(time, 0, during) > 0;
}
