import { Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { controllerFlags } from '../../../src/flags/controller.ts';
import { dnsFlags } from '../../../src/flags/dns.ts';
import { nodeFlags } from '../../../src/flags/node.ts';
import { importFlags, poolsFlags, poolsPlanFlags } from '../../../src/flags/pools.ts';
import {
  ConfigError,
  type Flag,
  group,
  optional,
  readFlags,
  type Table,
  text,
  wholeNumber,
} from '../../../src/flags/readers.ts';
import { auditFlags, topFlags, traceFlags } from '../../../src/flags/reports.ts';
import { routerFlags } from '../../../src/flags/router.ts';
import { runFlags } from '../../../src/flags/run.ts';
import { upFlags } from '../../../src/flags/up.ts';

const tables: readonly Table[] = [
  ...[upFlags, controllerFlags, nodeFlags, dnsFlags, routerFlags, auditFlags, topFlags, runFlags, traceFlags],
  ...[poolsFlags, poolsPlanFlags, importFlags],
];

function rowsOf(table: Table): readonly Flag<unknown>[] {
  return Object.values(table).flatMap((entry) => ('flags' in entry ? rowsOf(entry.flags) : [entry]));
}

describe('every table', () => {
  test('has defaults that its readers take', () => {
    const rows = tables.flatMap(rowsOf).filter((row) => row.default !== undefined);
    expect(rows.length).toBeGreaterThan(50);
    for (const row of rows) expect(() => row.read(row.default), row.flag).not.toThrow();
  });

  test('is read by the names that commander gives', () => {
    for (const row of tables.flatMap(rowsOf)) {
      const given = { [new Option(row.flag).attributeName()]: 'given' };
      expect(readFlags({ one: { ...row, read: (value) => value } }, given), row.flag).toEqual({
        one: 'given',
      });
    }
  });
});

describe('readFlags', () => {
  const port = { flag: '-p, --port <port>', about: 'a port', read: wholeNumber(1, 9) };
  const host = { flag: '--the-host <name>', about: 'a host', read: optional(text) };

  test('gives typed values, which nobody changes', () => {
    const values = readFlags({ port, host }, { port: '7' });
    expect(values).toEqual({ port: 7, host: undefined });
    expect(Object.isFrozen(values)).toBe(true);
  });

  test('makes one value of a group, with the rules between its flags', () => {
    const place = group({ port, host }, (values) => {
      if (values.host === undefined) throw new ConfigError('--port requires --the-host');
      return `${values.host}:${values.port}`;
    });
    expect(readFlags({ place }, { port: '7', theHost: 'a' })).toEqual({ place: 'a:7' });
    expect(() => readFlags({ place }, { port: '7' })).toThrow('--port requires --the-host');
  });

  test('names the flag of a wrong value by its long form', () => {
    expect(() => readFlags({ port }, { port: '10' })).toThrow(
      new ConfigError('--port: must be a whole number from 1 to 9'),
    );
    expect(() => readFlags({ port }, {})).toThrow('--port: needs a value');
  });
});
