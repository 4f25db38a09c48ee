import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import { program, type ProgramName } from '../../cluster/programs.ts';

/** What is built by the go command for images of the suite. */
export const imagePrograms = [
  'agnhost',
  'sample-apiserver',
  'etcd',
] as const satisfies readonly ProgramName[];

/**
 * The images of the suite whose program matters to a test, with the program of each: built, or a web server by busybox.
 *
 * @param home where scripts go: containers of every user have to see it.
 */
export function makeImages(home: string): Readonly<Record<string, string>> {
  const folder = join(home, 'image');
  mkdirSync(folder);
  for (const each of [home, folder]) chmodSync(each, 0o755);
  const script = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name);
    writeFileSync(path, `${['#!/bin/bash', ...lines].join('\n')}\n`, { mode: 0o755 });
    return path;
  };
  const webServer = (name: string, root: string, page: string, text: string): string =>
    script(name, [
      `[ -e ${root}/${page} ] || { mkdir -p ${root} && echo '${text}' >${root}/${page}; }`,
      // A process 1 hears only signals that it has a handler for.
      "trap 'exit 0' TERM",
      `busybox httpd -f -p 80 -h ${root} &`,
      'wait',
    ]);
  const tests = 'registry.k8s.io/e2e-test-images';
  const welcome = '<h1>Welcome to nginx!</h1>';
  const images = {
    [`${tests}/agnhost`]: script('agnhost', agnhostLines(folder)),
    [`${tests}/nginx`]: webServer('nginx', '/usr/share/nginx/html', 'index.html', welcome),
    [`${tests}/nautilus`]: webServer('nautilus', '/srv', 'data.json', '{"image":"nautilus.jpg"}'),
    [`${tests}/sample-apiserver`]: join(folder, 'sample-apiserver'),
    'registry.k8s.io/etcd': join(folder, 'etcd'),
  };
  for (const name of ['sample-apiserver', 'etcd'] as const) copyFileSync(program(name), join(folder, name));
  return images;
}

/** Kubernetes' agnhost, with what its image has beside the program: the command without words, a certificate. */
function agnhostLines(folder: string): readonly string[] {
  const built = join(folder, 'agnhost-built');
  copyFileSync(program('agnhost'), built);
  const validity = { now: new Date() };
  const ca = createCertificateAuthority('localhost', validity);
  const { certificate, key } = issueServerCertificate(ca, 'localhost', ['localhost'], validity);
  writeFileSync(join(folder, 'localhost.crt'), certificate);
  writeFileSync(join(folder, 'localhost.key'), key);
  return [
    // Tests move the files. A container whose root is read-only has none.
    `cp --no-clobber ${folder}/localhost.* / 2>/dev/null`,
    '[ $# -gt 0 ] || set -- pause',
    `exec -a /agnhost ${built} "$@"`,
  ];
}
