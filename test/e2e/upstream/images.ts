import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import { moduleFolder, program, type ProgramName } from '../../cluster/programs.ts';

/** What is built by the go command for images of the suite. */
export const imagePrograms = [
  'agnhost',
  'nonewprivs',
  'sample-apiserver',
  'etcd',
  'coredns',
] as const satisfies readonly ProgramName[];

/**
 * The images of the suite whose program or files matter to a test, with the file or folder of each.
 *
 * @param home where scripts go: containers of every user have to see it.
 */
export function makeImages(home: string): Readonly<Record<string, string>> {
  const folder = join(home, 'image');
  mkdirSync(folder);
  for (const each of [home, folder]) chmodSync(each, 0o755);
  const script = (path: string, lines: readonly string[]): string => {
    const at = join(folder, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, `${['#!/bin/bash', ...lines].join('\n')}\n`, { mode: 0o755 });
    return at;
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
    [`${tests}/agnhost`]: makeAgnhost(folder, script),
    [`${tests}/busybox`]: makeBusybox(folder),
    [`${tests}/kitten`]: makeKitten(folder),
    [`${tests}/nonewprivs`]: join(folder, 'nonewprivs'),
    [`${tests}/nginx`]: webServer('nginx', '/usr/share/nginx/html', 'index.html', welcome),
    [`${tests}/nautilus`]: webServer('nautilus', '/srv', 'data.json', '{"image":"nautilus.jpg"}'),
    [`${tests}/sample-apiserver`]: join(folder, 'sample-apiserver'),
    'registry.k8s.io/etcd': join(folder, 'etcd'),
  };
  for (const name of ['sample-apiserver', 'etcd', 'nonewprivs'] as const) {
    copyFileSync(program(name), join(folder, name));
  }
  // As in its image: it would be root, if it could.
  chmodSync(join(folder, 'nonewprivs'), 0o4755);
  return images;
}

/**
 * Kubernetes' agnhost by its two names, CoreDNS beside it, and what its image has more: the command without words, a
 * certificate.
 */
function makeAgnhost(folder: string, script: (path: string, lines: readonly string[]) => string): string {
  const entrypoint = script('agnhost/agnhost', [
    // Tests move the files. A container whose root is read-only has none.
    `cp --no-clobber ${folder}/localhost.* / 2>/dev/null`,
    '[ $# -gt 0 ] || set -- pause',
    'exec -a /agnhost /agnhost-2 "$@"',
  ]);
  const image = dirname(entrypoint);
  copyFileSync(program('agnhost'), join(image, 'agnhost-2'));
  copyFileSync(program('coredns'), join(image, 'coredns'));
  const validity = { now: new Date() };
  const ca = createCertificateAuthority('localhost', validity);
  const { certificate, key } = issueServerCertificate(ca, 'localhost', ['localhost'], validity);
  writeFileSync(join(folder, 'localhost.crt'), certificate);
  writeFileSync(join(folder, 'localhost.key'), key);
  return image;
}

/**
 * Where a test calls busybox by a path. Other programs are the machine's; its shell is not that of the image, either: ash of
 * busybox 1.35, as Debian 12 has it, drops variables such as `data-1`, which tests read.
 */
function makeBusybox(folder: string): string {
  const image = join(folder, 'busybox');
  mkdirSync(join(image, 'bin'), { recursive: true });
  copyFileSync('/bin/busybox', join(image, 'bin/sysctl'));
  return image;
}

/** The two files of an image that a test reads in a volume: one of its own, and one of the Alpine that it is made from. */
function makeKitten(folder: string): string {
  const image = join(folder, 'kitten');
  mkdirSync(join(image, 'etc'), { recursive: true });
  const source = join(moduleFolder('agnhost', 'k8s.io/kubernetes'), 'test/images/kitten/html');
  copyFileSync(join(source, 'data.json'), join(image, 'data.json'));
  writeFileSync(join(image, 'etc/os-release'), 'NAME="Alpine Linux"\nID=alpine\n');
  return image;
}
