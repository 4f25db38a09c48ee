import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { textAt } from '../../src/objects/json.ts';
import { suiteImages } from '../gateway-api/suite.ts';
import { wordsOf } from '../support/dockerfile.ts';
import { buildImageRoot, debianRoot, imageStage } from '../support/image-root.ts';
import { pauseImage } from './node.ts';
import { run } from './processes.ts';
import { cache, metalLbModule, moduleFolder, program } from './programs.ts';

/** What the config of an image says of its process (OCI image specification). */
interface ImageConfig {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly User?: string;
  readonly WorkingDir?: string;
}

const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Writes a docker archive with one layer, the files below `root`. */
function writeArchive(file: string, root: string, config: ImageConfig, tags: readonly string[]): void {
  const directory = mkdtempSync(`${file}-`);
  const layer = join(directory, 'layer.tar');
  const owner = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  execFileSync('tar', ['--directory', root, ...owner, '--create', '--file', layer, '.']);
  const digest = run('sha256sum', [layer]).slice(0, 64);
  const text = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  });
  const name = `${createHash('sha256').update(text).digest('hex')}.json`;
  writeFileSync(join(directory, name), text);
  const manifest = [{ Config: name, RepoTags: tags, Layers: ['layer.tar'] }];
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify(manifest));
  const archive = join(directory, 'image.tar');
  execFileSync('tar', [
    '--directory',
    directory,
    '--create',
    '--file',
    archive,
    name,
    'manifest.json',
    'layer.tar',
  ]);
  renameSync(archive, file);
  rmSync(directory, { recursive: true });
}

/** What the suite's images have beside agnhost: what its Pods are made to run. */
const testPackages = [
  ...['bind9-dnsutils', 'conntrack', 'curl', 'iperf', 'iproute2', 'iputils-ping', 'netcat-openbsd', 'procps'],
  ...['wget', 'ca-certificates'],
];

/** The tags of e2e.test's images that the tests of the lists use. */
export function suiteTags(): string[] {
  const listed = run(program('e2e.test'), ['--list-images']).trim().split('\n');
  return listed.filter((image) => /\/(agnhost|busybox|distroless-iptables|glibc-dns-testing):/.test(image));
}

/** A Debian with the programs that the suite's Pods run, and agnhost. */
function agnhostArchive(hasCoreDns: boolean): string {
  const packagesHash = createHash('sha256')
    .update(`${testPackages.join(' ')} ${hasCoreDns} ${suiteTags().join(' ')}`)
    .update(program('agnhost'));
  const file = join(cache, 'images', `agnhost-${packagesHash.digest('hex').slice(0, 12)}.tar`);
  if (existsSync(file)) return file;
  console.log('making the image of agnhost');
  mkdirSync(join(cache, 'images'), { recursive: true });
  const directory = mkdtempSync(join(cache, 'images', '.root-'));
  const root = join(directory, 'root');
  debianRoot(root, testPackages, join(cache, 'images'));
  // GNU's wget would ask twenty times.
  writeFileSync(join(root, 'etc/wgetrc'), 'tries = 1\n');
  mkdirSync(join(root, 'uploads'));
  // Of its porter, which serves TLS.
  const validity = { now: new Date() };
  const ca = createCertificateAuthority('localhost', validity);
  const { certificate, key } = issueServerCertificate(ca, 'localhost', ['localhost'], validity);
  writeFileSync(join(root, 'localhost.crt'), certificate);
  writeFileSync(join(root, 'localhost.key'), key);
  copyFileSync(program('agnhost'), join(root, 'agnhost'));
  // The test of "configurable pod resolv.conf" runs the CoreDNS that agnhost's image has.
  if (hasCoreDns) copyFileSync(program('coredns'), join(root, 'coredns'));
  const config = { Entrypoint: ['/agnhost'], Cmd: ['pause'], Env: [path] };
  writeArchive(file, root, config, suiteTags());
  rmSync(directory, { recursive: true });
  return file;
}

/** As the manifests of its module name them. */
function metalLbTags(name: 'controller' | 'speaker'): string[] {
  const manifest = join(
    moduleFolder('metallb-controller', metalLbModule),
    'config/controllers',
    `${name}.yaml`,
  );
  return /image: (\S+)/.exec(readFileSync(manifest, 'utf8'))?.slice(1) ?? [];
}

type ImageProgram = 'pause' | 'coredns' | 'echo-basic' | 'metallb-controller' | 'metallb-speaker';

function programArchive(name: ImageProgram, tags: readonly string[]): string {
  const built = program(name);
  const hash = createHash('sha256').update(built).update(tags.join(' ')).digest('hex').slice(0, 12);
  const file = join(cache, 'images', `${name}-${hash}.tar`);
  if (existsSync(file)) return file;
  mkdirSync(join(cache, 'images'), { recursive: true });
  const root = mkdtempSync(join(cache, 'images', '.root-'));
  chmodSync(root, 0o755);
  copyFileSync(built, join(root, name));
  writeArchive(file, root, { Entrypoint: [`/${name}`], Env: [path] }, tags);
  rmSync(root, { recursive: true });
  return file;
}

export const coreDnsImage = 'registry.k8s.io/coredns/coredns:rig';

/** The image of servicenet, by the steps of its Dockerfile from this checkout, below `directory`. */
function servicenetArchive(directory: string): string {
  const root = join(directory, 'servicenet-root');
  console.log('making the image of servicenet');
  buildImageRoot(join(directory, 'build'), root, join(cache, 'images'));
  const stage = imageStage();
  const user = stage.instructions.find(({ name }) => name === 'USER')?.text;
  const config = {
    Entrypoint: wordsOf(stage, 'ENTRYPOINT'),
    Cmd: wordsOf(stage, 'CMD'),
    Env: [path, 'NODE_ENV=production'],
    ...(user === undefined ? {} : { User: user }),
    WorkingDir: '/app',
  };
  const version: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
  const file = join(directory, 'servicenet.tar');
  writeArchive(file, root, config, [`docker.io/library/servicenet:${textAt(version, 'version')}`]);
  return file;
}

/** What nodes have images of beside pause, agnhost and servicenet. */
export interface ImageNeeds {
  /** The first time, its build takes as long as Kubernetes'. */
  readonly hasCoreDns: boolean;
  readonly hasMetalLb: boolean;
  /** The suite of Gateway API runs. */
  readonly hasGateways: boolean;
}

/** The archives that every node imports. */
export function makeImages(directory: string, { hasCoreDns, hasMetalLb, hasGateways }: ImageNeeds): string[] {
  mkdirSync(join(directory, 'build'), { recursive: true });
  const coreDnsTags = hasGateways ? suiteImages('registry.k8s.io/coredns/coredns') : [];
  return [
    programArchive('pause', [pauseImage]),
    ...(hasCoreDns || hasGateways ? [programArchive('coredns', [coreDnsImage, ...coreDnsTags])] : []),
    ...(hasGateways
      ? [programArchive('echo-basic', suiteImages('registry.k8s.io/gateway-api/echo-basic'))]
      : []),
    ...(hasMetalLb
      ? [
          programArchive('metallb-controller', metalLbTags('controller')),
          programArchive('metallb-speaker', metalLbTags('speaker')),
        ]
      : []),
    agnhostArchive(hasCoreDns),
    servicenetArchive(directory),
  ];
}
