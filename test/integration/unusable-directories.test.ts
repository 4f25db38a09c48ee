import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startEmbedded } from '../../src/apiserver/embedded.ts';
import { writeKubeconfig } from '../../src/commands/local-cluster/kubeconfig.ts';
import { nodePortRange, readServiceCidrs } from '../../src/flags/shared.ts';
import { commandLine } from '../support/command-line.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-unusable-'));
  writeFileSync(join(folder, 'file'), '');
  symlinkSync('circle', join(folder, 'circle'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const nowhere: readonly (readonly [where: string, why: string])[] = [
  ['file', 'it is a file, or below one'],
  ['file/below', 'it is a file, or below one'],
  ['circle/below', 'symbolic links lead in a circle'],
  ['x'.repeat(300), 'the name is too long'],
];
/** For all users, root too. */
const refused = process.platform === 'linux' ? [['/proc/x', 'no directory can be made there'] as const] : [];
const placeOf = (where: string): string => (where.startsWith('/') ? where : join(folder, where));

describe('a place that cannot be written', () => {
  test.each([...nowhere, ...refused])('is no place for the store: %s', async (where, why) => {
    const place = placeOf(where);
    const opened = startEmbedded({
      ...{ bindAddress: '127.0.0.1', port: 0, authorizationMode: 'RBAC', log: pino({ enabled: false }) },
      serviceCidrs: readServiceCidrs('10.96.0.0/16'),
      nodePorts: nodePortRange('30000-32767'),
      dataDirectory: place,
    });
    await expect(opened).rejects.toThrow(`cannot keep the store in ${place}: ${why}`);
  });

  test.each([...nowhere, ...refused])('is no place for the kubeconfig: %s', async (where, why) => {
    const written = writeKubeconfig(join(placeOf(where), 'kubeconfig'), '');
    await expect(written).rejects.toThrow(
      /^cannot write the kubeconfig .*; --write-kubeconfig names another file$/,
    );
    await expect(written).rejects.toThrow(`kubeconfig: ${why}`);
  });

  test('is no place for the kubeconfig: a directory', async () => {
    const place = join(folder, 'directory');
    mkdirSync(place);
    await expect(writeKubeconfig(place, '')).rejects.toThrow(
      `cannot write the kubeconfig ${place}: it is a directory; --write-kubeconfig names another file`,
    );
  });

  test.each([
    ['--data-dir', 'cannot keep the store in'],
    ['--write-kubeconfig', 'cannot write the kubeconfig'],
  ])('ends up with one line: %s', async (flag, message) => {
    const own = ['--port', '0', '--nodes', '0', '--network', 'off', '--controllers', ''];
    const kubeconfig = ['--write-kubeconfig', join(folder, 'kubeconfig')];
    const { code, errors } = await commandLine(
      'up',
      ...own,
      ...kubeconfig,
      flag,
      join(folder, 'file', 'x'),
      '--',
      'true',
    );
    expect(errors).toMatch(new RegExp(`^servicenet: ${message} .*: it is a file, or below one.*\n$`));
    expect(code).toBe(1);
  });
});
