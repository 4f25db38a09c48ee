import { readFileSync } from 'node:fs';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { issueCertificate } from '../../support/certificates.ts';
import { type PodNetwork, until } from './pod-network.ts';
import { familyOf, ifThere } from './up-process.ts';

/** A server of a Pod, and what an honest client gets of it. */
interface Server {
  readonly container: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly port: number;
  readonly path: string;
  readonly answer: RegExp;
  /** The port is one of TLS. */
  readonly isTls?: boolean;
  readonly udp?: number;
  /** What an honest client runs; default: curl. */
  readonly ask?: (address: string) => [string, ...string[]];
}

const agnhost = (port: number, path: string, answer: RegExp, ...args: string[]): Server => ({
  container: {
    image: 'registry.k8s.io/e2e-test-images/agnhost:2.53',
    args,
    env: ['POD_IP', 'NODE_IP'].map((name) => ({
      name,
      valueFrom: {
        fieldRef: {
          fieldPath: name === 'POD_IP' ? 'status.podIP' : 'status.hostIP',
        },
      },
    })),
  },
  ...{ port, path, answer },
});
const image = (name: string, path: string, answer: RegExp): Server => ({
  container: { image: `registry.k8s.io/e2e-test-images/${name}:1` },
  ...{ port: 80, path, answer },
});

const nameItem = { path: 'index.html', fieldRef: { fieldPath: 'metadata.name' } };

/** Files of servers that read some: a key pair, and names for the stand-in of CoreDNS. */
const mounted: Pick<Required<Server>, 'container' | 'spec'> = {
  container: { volumeMounts: [{ name: 'files', mountPath: '/files' }] },
  spec: { volumes: [{ name: 'files', configMap: { name: 'files' } }] },
};
const withFiles = (server: Server): Server => ({
  ...server,
  container: { ...server.container, ...mounted.container },
  spec: mounted.spec,
});
const keyPair = ['--tls-cert-file=/files/tls.crt', '--tls-private-key-file=/files/tls.key'];
const overTls = (port: number, answer: RegExp, ...args: string[]): Server => ({
  ...withFiles(agnhost(port, '/readyz', answer, ...args, `--port=${port}`, ...keyPair)),
  isTls: true,
});
const shell = (script: string): [string, ...string[]] => ['bash', '-c', script];
/** The question for `a.` by UDP, for printf. */
const question = String.raw`\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01`;

/** One Pod for each program that listens. */
export const servers: Readonly<Record<string, Server>> = {
  'stand-in': {
    container: {
      ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }],
    },
    ...{ port: 80, path: '/hostname', answer: /^stand-in$/, udp: 53 },
  },
  documents: {
    container: { image: 'nginx', volumeMounts: [{ name: 'site', mountPath: '/usr/share/nginx/html' }] },
    spec: { volumes: [{ name: 'site', downwardAPI: { items: [nameItem] } }] },
    ...{ port: 80, path: '/index.html', answer: /^documents$/ },
  },
  netexec: { ...agnhost(8080, '/hostname', /^netexec$/, 'netexec'), udp: 8081 },
  liveness: agnhost(8080, '/started', /^\d/, 'liveness'),
  'test-webserver': agnhost(80, '/', /<pre>/, 'test-webserver'),
  guestbook: agnhost(80, '/get', /"data"/, 'guestbook'),
  'grpc-health-checking': agnhost(8080, '/x', /404/, 'grpc-health-checking'),
  'no-snat-test': agnhost(8080, '/whoami', /:\d+$/, 'no-snat-test'),
  'serve-hostname': agnhost(9376, '/', /^serve-hostname$/, 'serve-hostname'),
  net: agnhost(8889, '/x', /404/, 'net', '--serve=:8889'),
  'serve-hostname-tcp': {
    ...agnhost(9376, '/', /^serve-hostname-tcp$/, 'serve-hostname', '--tcp', '--http=false', '--udp'),
    ask: (address) => shell(`cat </dev/tcp/${address}/9376`),
    udp: 9376,
  },
  porter: {
    ...agnhost(8080, '/', /^porter$/, 'porter'),
    container: {
      ...agnhost(0, '', /^/, 'porter').container,
      env: [
        { name: 'SERVE_PORT_8080', value: 'porter' },
        { name: 'SERVE_TLS_PORT_8443', value: 'porter' },
      ],
    },
  },
  // One byte is answered with the end of the connection, and more with its reset.
  'tcp-reset': {
    ...agnhost(8080, '/', /^ended$/, 'tcp-reset'),
    ask: (address) => shell(`exec 3<>/dev/tcp/${address}/8080; printf x >&3; cat <&3 && echo ended`),
  },
  webhook: overTls(8443, /^ok$/, 'webhook'),
  'crd-conversion-webhook': overTls(8443, /^ok$/, 'crd-conversion-webhook'),
  'sample-apiserver': {
    ...withFiles(image('sample-apiserver', '/readyz', /^ok$/)),
    container: {
      ...image('sample-apiserver', '', /^/).container,
      ...mounted.container,
      args: ['--secure-port=8443', ...keyPair],
    },
    port: 8443,
    isTls: true,
  },
  coredns: {
    ...withFiles(agnhost(53, '', /12 34/)),
    container: {
      ...agnhost(0, '', /^/, '-conf', '/files/Corefile').container,
      ...mounted.container,
      command: ['/coredns'],
    },
    ask: (address) =>
      shell(`exec 3<>/dev/udp/${address}/53; printf '${question}' >&3; head -c 2 <&3 | od -An -tx1`),
    udp: 53,
  },
  httpd: image('httpd', '/', /It works/),
  nautilus: image('nautilus', '/data.json', /nautilus/),
};

/** A listener, for `hostile-sender.ts`. */
export interface HostileTarget {
  readonly protocol: 'tcp' | 'tls' | 'udp' | 'unix' | 'peer';
  /** By `unix`: a path. */
  readonly address: string;
  readonly port: number;
  /** By TLS: the protocol that is agreed on. */
  readonly alpn?: string;
}

/** Pods of all built-in programs that listen. */
export class BuiltInServers {
  readonly #pods: PodNetwork;
  readonly #addresses = new Map<string, string>();

  private constructor(pods: PodNetwork) {
    this.#pods = pods;
  }

  static async create(pods: PodNetwork): Promise<BuiltInServers> {
    const made = new BuiltInServers(pods);
    const { certificate, key } = issueCertificate({ subject: 'webhook', names: ['webhook.test'] });
    const answer = await pods.call('POST', pods.path('configmaps'), {
      metadata: { name: 'files' },
      data: {
        'tls.crt': certificate,
        'tls.key': key,
        Corefile: '. {\n  hosts {\n    192.0.2.1 a\n  }\n}\n',
      },
    });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    for (const [name, { container, spec = {} }] of Object.entries(servers)) {
      await pods.pod(name, name, container, { spec });
    }
    for (const name of Object.keys(servers)) {
      const [pod] = await pods.running(name, 1);
      made.#addresses.set(name, pod?.status.podIP ?? '');
    }
    return made;
  }

  addressOf(name: string): string {
    return this.#addresses.get(name) ?? '';
  }

  listeners(): readonly HostileTarget[] {
    const programs = Object.entries(servers).flatMap(
      ([name, { port, udp, isTls = false }]): HostileTarget[] => {
        const address = this.addressOf(name);
        return [
          { protocol: 'tcp', address, port },
          ...(isTls ? [{ protocol: 'tls', address, port } as const] : []),
          ...(udp === undefined ? [] : [{ protocol: 'udp', address, port: udp } as const]),
        ];
      },
    );
    return [
      ...programs,
      { protocol: 'tcp', address: this.addressOf('grpc-health-checking'), port: 5000 },
      { protocol: 'tls', address: this.addressOf('porter'), port: 8443 },
    ];
  }

  async statusOf(name: string): Promise<ContainerStatus | undefined> {
    const { body } = await this.#pods.call('GET', `${this.#pods.path('pods')}/${name}`);
    return (body as unknown as Pod).status.containerStatuses?.[0];
  }

  /** Resolves when each has answered an honest client. */
  async answer(): Promise<void> {
    for (const [name, { port, path, answer, isTls = false, ask }] of Object.entries(servers)) {
      const address = this.addressOf(name);
      const url = `${isTls ? 'https' : 'http'}://${address}:${port}${path}`;
      const command = ask?.(address) ?? ['curl', '-sk', '--max-time', '2', url];
      await until(
        async () => (await this.#pods.server.run(['timeout', '5', ...command], { node: 'node-1' })).stdout,
        (text) => answer.test(text.trim()),
      );
    }
  }
}

/** The process of all built-in programs of the networks of this process. */
export function programsProcess(): number | undefined {
  return familyOf(process)
    .map(Number)
    .find((pid) => {
      const words = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
      return words.some((word) => word.includes('built-in-programs.ts'));
    });
}
