"""Writes a large Scala source: the same one each time. It compiles and does nothing useful."""

from pathlib import Path

UNIT = """
enum Shape{n}:
  case Circle(radius: Double, label: String)
  case Box(width: Double, height: Double, tags: List[String])
  case Group(members: Vector[Shape{n}], attributes: Map[String, Int])

trait Encoder{n}[-A]:
  def encode(value: A): List[(String, String)]
  def narrowed[B <: A]: Encoder{n}[B] = (value: B) => encode(value)

object Encoder{n}:
  given Encoder{n}[Int] = value => List("int" -> value.toString)
  given Encoder{n}[Double] = value => List("double" -> f"$value%.3f")
  given Encoder{n}[String] = value => List("string" -> value)
  given list[A](using one: Encoder{n}[A]): Encoder{n}[List[A]] =
    values => values.zipWithIndex.flatMap((v, i) => one.encode(v).map((k, t) => s"$k[$i]" -> t))
  given pair[A, B](using a: Encoder{n}[A], b: Encoder{n}[B]): Encoder{n}[(A, B)] =
    (left, right) => a.encode(left) ++ b.encode(right)
  given Encoder{n}[Shape{n}] =
    case Shape{n}.Circle(r, label) => List("circle" -> s"$label:$r")
    case Shape{n}.Box(w, h, tags) => ("box" -> s"$w x $h") :: tags.map("tag" -> _)
    case Shape{n}.Group(members, attributes) =>
      members.toList.flatMap(summon[Encoder{n}[Shape{n}]].encode) ++
        (for (k, v) <- attributes.toList if v > {n} % 7 yield k -> v.toString)

final case class Account{n}(id: Int, owner: String, entries: List[(Int, Double)], shape: Shape{n}):
  def balance: Double = entries.foldLeft(0.0)((sum, entry) => entry match
    case (kind, amount) if kind % 3 == 0 => sum - amount
    case (kind, amount) if kind > {n} => sum + amount * 2
    case (_, amount) => sum + amount)
  def encoded: List[(String, String)] =
    import Encoder{n}.given
    summon[Encoder{n}[List[(Int, Double)]]].encode(entries) ++
      summon[Encoder{n}[Shape{n}]].encode(shape)
  def merged(other: Account{n}): Either[String, Account{n}] =
    for
      same <- Either.cond(owner == other.owner, owner, s"$owner is not ${{other.owner}}")
      both <- Right(entries ++ other.entries).filterOrElse(_.nonEmpty, "no entries")
      sorted = both.sortBy((kind, amount) => (amount, kind))
    yield copy(owner = same, entries = sorted)

object Work{n}:
  def run(seed: Int): String =
    val accounts = (1 to 20).map: i =>
      val shape = if i % 2 == 0 then Shape{n}.Circle(i * 1.5, s"c$i")
        else
          val box = Shape{n}.Box(i, seed, List("a", "b"))
          Shape{n}.Group(Vector(box), Map("n" -> i, "s" -> seed))
      Account{n}(i, s"owner${{i % 3}}", List.tabulate(i % 5 + 1)(k => (k, k * 0.5 + seed)), shape)
    val grouped = accounts.groupMapReduce(_.owner)(_.balance)(_ + _)
    val merged = accounts.reduceLeft((a, b) => a.merged(b).getOrElse(a))
    val text = merged.encoded.collect {{ case (k, v) if v.length < 40 => s"$k=$v" }}.mkString(",")
    grouped.toSeq.sortBy(-_._2).map((k, v) => f"$k:$v%.1f").mkString(";") + text
"""


def write(path: Path, units: int) -> int:
    """Writes so many units; returns the number of lines."""
    calls = "\n".join(f"  println(Work{n}.run({n}))" for n in range(units))
    text = "package bench\n" + "".join(UNIT.format(n=n) for n in range(units))
    text += f"\n@main def all(): Unit =\n{calls}\n"
    path.write_text(text)
    return text.count("\n")
