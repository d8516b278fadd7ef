// How colours look to eyes with three kinds of cones and with two.
import { linear } from '../../src/flame/colours';

type Vector = [number, number, number];
type Matrix = [Vector, Vector, Vector];

// Machado, Oliveira and Fernandes (2009), severity 1: what is seen without one kind of cones.
export const SIGHTS: Record<string, Matrix> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function times(matrix: Matrix, v: readonly number[]): Vector {
  return matrix.map((row) => row[0] * v[0]! + row[1] * v[1]! + row[2] * v[2]!) as Vector;
}

/** Oklab: distances in it are about as large as they look. */
function oklab(light: Vector): Vector {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    light.map((channel) => Math.min(1, Math.max(0, channel))),
  ).map(Math.cbrt);
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

/** How far two colours are apart for some sight. */
export function distance(a: string, b: string, sight: Matrix): number {
  const [x, y] = [a, b].map((colour) => oklab(times(sight, linear(colour))));
  return Math.hypot(...x!.map((value, i) => value - y![i]!));
}
