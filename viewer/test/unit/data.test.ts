// From bytes to columns, names, labels, threads and numbers.
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { beginning, decodeBase64, gunzip } from '../../src/data/blocks';
import { Column, readContainer, readHeader } from '../../src/data/columns';
import { aboutSamples } from '../../src/data/facts';
import { count, duration, percent, plural } from '../../src/data/format';
import { plain, shortened } from '../../src/data/plain';
import type { LeftOut } from '../../src/data/profile';
import { Labels } from '../../src/flame/labels';
import { makeKeys } from '../../src/tree/keys';
import { poolOf, threadRows } from '../../src/tree/select';
import { namesOf, profileOf } from './art';

function column(width: number, delta: boolean, rows: number, bytes: number[]): Column {
  return new Column({ name: 'x', rows, width, delta, bytes: bytes.length }, Uint8Array.from(bytes));
}

describe('columns', () => {
  it('put planes of bytes together', () => {
    expect([...column(4, false, 2, [1, 2, 0, 1, 0, 0, 0, 255]).u32()]).toEqual([1, 0xff000102]);
    expect([...column(2, false, 2, [1, 2, 3, 4]).u32()]).toEqual([0x301, 0x402]);
    expect([...column(6, false, 1, [255, 255, 255, 255, 255, 127]).f64()]).toEqual([2 ** 47 - 1]);
  });

  it('add up differences, which may wrap', () => {
    const minusTwo = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff];
    const planes = minusTwo.flatMap((byte, plane) => [plane === 0 ? 5 : 0, byte]);
    expect([...column(6, true, 2, planes).f64()]).toEqual([5, 3]);
    expect([...column(4, true, 3, [5, 255, 1, 0, 255, 0, 0, 255, 0, 0, 255, 0]).u32()]).toEqual([
      5, 4, 5,
    ]);
  });
});

function container(header: object, body: number[]): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const out = new Uint8Array(8 + json.length + body.length);
  out.set(new TextEncoder().encode('DWP1'));
  new DataView(out.buffer).setUint32(4, json.length, true);
  out.set(json, 8);
  out.set(body, 8 + json.length);
  return out;
}

describe('the container', () => {
  const entry = { name: 'a', rows: 2, width: 1, delta: false, bytes: 2 };

  it('finds columns behind each other', () => {
    const data = container({ columns: [entry, { ...entry, name: 'b' }] }, [1, 2, 3, 4]);
    expect([...readContainer(data).column('b').u8()]).toEqual([3, 4]);
  });

  it('gives its header from the first bytes of what is packed', async () => {
    // Noise, so that the packed bytes end long after the header.
    const noise = Array.from({ length: 1 << 17 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 24);
    const body = noise.map((byte, i) => byte ^ (Math.imul(i ^ 77, 0x85ebca6b) >>> 24));
    const columns = [{ ...entry, rows: body.length, bytes: body.length }];
    const packed = new Uint8Array(gzipSync(container({ columns, title: 'x' }, body)));
    const first = await beginning(packed.slice(0, 1 << 14), 1 << 16);
    expect(first.length).toBeLessThan(body.length);
    expect(readHeader<{ title: string }>(first)?.title).toBe('x');
    expect(readHeader(first.slice(0, 20))).toBeNull();
    expect(readHeader(new Uint8Array(20))).toBeNull();
    expect((await beginning(new Uint8Array([1, 2, 3]), 100)).length).toBe(0);
  });

  it('says in words what is wrong', () => {
    const good = container({ columns: [entry] }, [1, 2]);
    expect(() => readContainer(good).column('z')).toThrow(/no column z/);
    expect(() => readContainer(good.slice(0, good.length - 1))).toThrow(/cut off/);
    expect(() => readContainer(good.slice(0, 12))).toThrow(/cut off/);
    expect(() => readContainer(new Uint8Array(3))).toThrow(/not a profile/);
    expect(() => readContainer(container({ columns: [{ ...entry, rows: 9 }] }, [1, 2]))).toThrow(
      /cut off/,
    );
  });
});

describe('blocks', () => {
  it('unpack base64 and gzip, in any number of blocks', async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * i) % 251);
    const text = gzipSync(bytes).toString('base64');
    const cut = 4 * Math.floor(text.length / 8);
    expect(await gunzip(decodeBase64([text.slice(0, cut), text.slice(cut)]))).toEqual(bytes);
    await expect(gunzip(decodeBase64([text.slice(0, cut)]))).rejects.toThrow();
  });
});

describe('names', () => {
  it('lose every character that acts on the text around it', () => {
    expect(plain('a\u0000b\u001b[31m\u202ec\u2066\u200b\u2028d\ufeff')).toBe(
      'a\ufffdb\ufffd[31m\ufffdc\ufffd\ufffd\ufffdd\ufffd',
    );
    expect(plain('java.lang.λ名前')).toBe('java.lang.λ名前');
    expect(namesOf(['x', 'a\u202eb', 'é']).text(1)).toBe('a\ufffdb');
    expect(namesOf(['x', 'y', 'é']).text(2)).toBe('é');
  });

  it('lose their middle when they are long', () => {
    expect(shortened('abcdefghij', 5)).toBe('a…hij');
    expect(shortened('x'.repeat(10_000), 300).length).toBe(300);
    expect(shortened('😀😀😀😀', 4)).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  });

  it('make keys of class and method, overloads together', () => {
    const profile = profileOf('a.A.f:1 a.A.f:2 a.A.g b.A.f');
    expect(makeKeys(profile, false).methods).toBe(3);
    expect(makeKeys(profile, true).methods).toBe(4);
    const lines = makeKeys(profile, true);
    expect(Array.from({ length: 4 }, (_, key) => lines.label(key))).toEqual([
      'a.A.f:1',
      'a.A.f:2',
      'a.A.g',
      'b.A.f',
    ]);
  });
});

describe('labels', () => {
  const profile = profileOf('org.example.Service.handle libjvm.so.Arena::grow[VM]');
  const labels = new Labels((text) => text.length * 10, makeKeys(profile, false));

  it('get shorter from the outside in', () => {
    expect([260, 150, 60, 50, 30].map((room) => labels.fit(0, room))).toEqual([
      'org.example.Service.handle',
      'Service.handle',
      'handle',
      'hand…',
      'ha…',
    ]);
    expect(labels.fit(0, 20)).toBe('');
    expect(labels.fit(1, 120)).toBe('Arena::grow');
  });
});

describe('threads', () => {
  it('are put into pools by their names', () => {
    expect(poolOf('http-exec-12')).toBe('http-exec-#');
    expect(poolOf('HSQLDB Connection @1f6c9cd8')).toBe('HSQLDB Connection @#');
    expect(poolOf('[0x5c1a 0xbeef] socket')).toBe('[# #] socket');
    expect(poolOf('0x-0xyz')).toBe('#x-#xyz');
    const uuid = '3f1c9a40-0b5e-4d2a-9c1f-00ffab12cdef';
    expect(poolOf(`app-${uuid}-StreamThread-1`)).toBe('app-#-StreamThread-#');
    for (const name of ['facade-deadbeef', 'xcafe-y']) expect(poolOf(name)).toBe(name);
    expect(poolOf('db01-feed2')).toBe('db#-feed#');
    const rows = threadRows(profileOf('thread: p-1 p-2 main\nweight: 1 2 9\na.x a.x a.x'));
    expect(rows.threads.map((row) => row.name)).toEqual(['main', 'p-2', 'p-1']);
    expect(rows.pools).toEqual([{ pool: 'p-#', threads: 2, weight: 3 }]);
  });
});

describe('numbers', () => {
  it('are short', () => {
    expect([percent(0.1234), percent(0.00123), percent(0)]).toEqual([
      '12.3\u00a0%',
      '0.12\u00a0%',
      '0.0\u00a0%',
    ]);
    expect([
      duration(999),
      duration(1500),
      duration(45.6e6),
      duration(2.5e9),
      duration(150e9),
    ]).toEqual(['999\u00a0ns', '1.50\u00a0µs', '45.6\u00a0ms', '2.50\u00a0s', '2.5\u00a0min']);
    expect([count(1234567), plural(1, 'sample'), plural(2, 'sample')]).toEqual([
      '1,234,567',
      '1 sample',
      '2 samples',
    ]);
  });
});

describe('what is known of the samples', () => {
  const leftOut = (facts: LeftOut | null) => {
    const profile = profileOf('a.A.x');
    profile.header.leftOut = facts;
    return aboutSamples(profile).find(([name]) => name === 'Left out')?.[1];
  };

  it('says which frames are left out of very many stacks', () => {
    expect(leftOut(null)).toBeUndefined();
    const facts = { below: 2, nodes: 4_000_000, kept: 200_000, events: 400_000, cut: 100_000 };
    expect(leftOut(facts)).toContain('one sample only has');
    expect(leftOut(facts)).toContain('25');
    expect(leftOut({ ...facts, below: 7 })).toContain('fewer than 7 samples share');
  });
});
