import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import type { Container, Pod, Probe } from '../../objects/types/core.generated.ts';
import type { DeclaredPort } from '../pod-server.ts';
import type { WebServer } from '../stand-ins/document-root.ts';
import type { ProgramImage, ProgramImages } from '../program.ts';
import { isSidecar } from '../../objects/pods.ts';

/** The program of an image: no image is ever pulled. */
export type ImageProgram =
  /** A server of ours on the declared ports. */
  | { readonly kind: 'server' }
  /** An image of {@link ProgramImages}, by its name. */
  | { readonly kind: 'program'; readonly name: string }
  /** A file of this machine, which is the image's program wherever its containers look for it. */
  | { readonly kind: 'file'; readonly path: string }
  /** A folder of this machine, whose files are in the root folder of its containers. */
  | { readonly kind: 'folder'; readonly path: string }
  /** Programs of this machine. */
  | { readonly kind: 'commands'; readonly entrypoint: readonly string[]; readonly cmd: readonly string[] };

/** Programs that an image can be given by name. `agnhost` is in {@link ProgramImages}. */
export const programNames = ['server', 'agnhost', 'pause', 'commands'] as const;

const shell: ImageProgram = { kind: 'commands', entrypoint: [], cmd: ['sh'] };
const pause: ImageProgram = { kind: 'commands', entrypoint: ['/pause'], cmd: [] };

const named: Readonly<Record<(typeof programNames)[number], ImageProgram>> = {
  ...{ server: { kind: 'server' }, agnhost: { kind: 'program', name: 'agnhost' }, pause, commands: shell },
};

/** The program of a name: one of {@link programNames}, or a file or folder of this machine; undefined for neither. */
export function programNamed(name: string, isFolder: (path: string) => boolean): ImageProgram | undefined {
  const known = programNames.find((each) => each === name);
  if (known !== undefined) return named[known];
  if (!name.startsWith('/')) return undefined;
  return { kind: isFolder(name) ? 'folder' : 'file', path: name };
}

/** Files and links to files; links to folders are not followed: they may lead in circles. */
function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return existsSync(path) && statSync(path).isFile() ? [path] : [];
  });
}

/** What runs without a command: the file of the folder's own name, or else a shell. */
function programOfFolder(path: string): ImageProgram {
  const name = basename(path);
  const file = statSync(join(path, name), { throwIfNoEntry: false });
  return file?.isFile() === true ? { kind: 'commands', entrypoint: [`/${name}`], cmd: [] } : shell;
}

/** By repository, as {@link repositoryOf} shortens it. */
const builtIn: ReadonlyMap<string, ImageProgram> = new Map<string, ImageProgram>([
  ...['registry.k8s.io/pause', 'k8s.gcr.io/pause'].map((image) => [image, pause] as const),
  ...[
    ...['busybox', 'alpine', 'debian', 'ubuntu', 'fedora', 'bash', 'nicolaka/netshoot'],
    ...['busybox', 'jessie-dnsutils', 'perl'].map((name) => `registry.k8s.io/e2e-test-images/${name}`),
  ].map((image) => [image, shell] as const),
  ['curlimages/curl', { kind: 'commands', entrypoint: ['curl'], cmd: ['--help'] }],
]);

/** The port of images that tutorials start without declaring one, as their `EXPOSE` says. */
const exposed: ReadonlyMap<string, number> = new Map([
  ...[
    ...['nginx', 'httpd', 'caddy', 'traefik/whoami', 'kennethreitz/httpbin'],
    'gcr.io/google-samples/gb-frontend',
    ...['nginx-slim', 'hpa-example'].map((name) => `registry.k8s.io/${name}`),
  ].map((image) => [image, 80] as const),
  ...[
    ...['hello-app', 'kubernetes-bootcamp', 'node-hello'].map((name) => `gcr.io/google-samples/${name}`),
    ...['kicbase/echo-server', 'registry.k8s.io/echoserver', 'jocatalin/kubernetes-bootcamp'],
    ...['mendhak/http-https-echo', 'nginxinc/nginx-unprivileged'],
  ].map((image) => [image, 8080] as const),
  ['hashicorp/http-echo', 5678],
]);

/** Web servers, by the last name of their images: each registry and publisher has them. */
const webServers: ReadonlyMap<string, WebServer> = new Map<string, WebServer>([
  ...['nginx', 'nginx-slim', 'nginx-unprivileged'].map(
    (name) => [name, { name: 'nginx', root: '/usr/share/nginx/html' }] as const,
  ),
  ['httpd', { name: 'httpd', root: '/usr/local/apache2/htdocs' }],
  ['caddy', { name: 'caddy', root: '/usr/share/caddy' }],
]);

/** The web server that an image is; undefined for others. */
export function webServerOf(image: string): WebServer | undefined {
  return webServers.get(repositoryOf(image).split('/').at(-1) ?? '');
}

/** The port of an image's server whose container declares none. */
export function exposedPort(image: string): number | undefined {
  return exposed.get(repositoryOf(image));
}

/** An image without tag, digest, and the registry that is meant where none is named. */
function repositoryOf(image: string): string {
  const [withoutDigest = ''] = image.split('@');
  const slash = withoutDigest.lastIndexOf('/');
  const colon = withoutDigest.indexOf(':', slash + 1);
  const repository = colon === -1 ? withoutDigest : withoutDigest.slice(0, colon);
  return repository.replace(/^(?:docker\.io|index\.docker\.io)\//, '').replace(/^library\//, '');
}

/** The program of a container. */
export type ResolvedImage =
  | { readonly kind: 'stand-in' }
  /** `argv`: the program and its arguments before `$(VAR)` is replaced. */
  | { readonly kind: 'program'; readonly image: ProgramImage; readonly argv: readonly string[] }
  | { readonly kind: 'command'; readonly argv: readonly string[] };

/** The table of images. */
export class Images {
  readonly #chosen: ReadonlyMap<string, ImageProgram>;
  readonly #ours: ProgramImages;

  /**
   * @param chosen programs by image, with or without its tag, before those that are built in.
   * @param ours the images that are programs of ours.
   */
  constructor(chosen: ReadonlyMap<string, ImageProgram>, ours: ProgramImages) {
    this.#chosen = chosen;
    this.#ours = ours;
  }

  /** Whether this file of the machine was chosen for an image. */
  isFile(path: string): boolean {
    return [...this.#chosen.values()].some((program) => program.kind === 'file' && program.path === path);
  }

  /** The file of the machine that was chosen for an image. */
  fileOf(image = ''): string | undefined {
    const program = this.#programOf(image);
    return program?.kind === 'file' ? program.path : undefined;
  }

  /** The folder of the machine that was chosen for an image. */
  folderOf(image: string): string | undefined {
    const program = this.#programOf(image);
    return program?.kind === 'folder' ? program.path : undefined;
  }

  /** The files of the folder that was chosen for an image, by their paths in containers. @throws the system's error. */
  filesOf(image = ''): ReadonlyMap<string, string> {
    const folder = this.folderOf(image);
    const files = folder === undefined ? [] : filesBelow(folder);
    return new Map(files.map((path) => [join('/', relative(folder ?? '', path)), path]));
  }

  /**
   * The program of an image as containers find it in the root folder: a script that runs the file of the machine, or says
   * what becomes of a program of ours. By its path there.
   */
  executables(image = ''): ReadonlyMap<string, string> {
    const file = this.fileOf(image);
    if (file !== undefined) {
      const at = `/${basename(file)}`;
      return new Map(at === file ? [] : [[at, `#!/bin/sh\nexec ${file} "$@"\n`]]);
    }
    const ours = this.#programOfOurs(image);
    return new Map(ours === undefined ? [] : [[ours.entrypoint, ours.script]]);
  }

  #programOfOurs(image: string): ProgramImage | undefined {
    const program = this.#programOf(image);
    if (program === undefined) return this.#ours.byRepository.get(repositoryOf(image));
    return program.kind === 'program' ? this.#ours.byName.get(program.name) : undefined;
  }

  #programOf(image: string): ImageProgram | undefined {
    const repository = repositoryOf(image);
    return this.#chosen.get(image) ?? this.#chosen.get(repository) ?? builtIn.get(repository);
  }

  /** Unknown images keep the server unless they have a command; an image that is given the server has it always. */
  resolve({
    image = '',
    command = [],
    args = [],
  }: Pick<Container, 'image' | 'command' | 'args'>): ResolvedImage {
    const chosen = this.#programOf(image);
    const program = chosen?.kind === 'folder' ? programOfFolder(chosen.path) : chosen;
    const ours = this.#programOfOurs(image);
    const [first] = command;
    if (ours !== undefined && (first === undefined || ours.commands.includes(first))) {
      return {
        kind: 'program',
        image: ours,
        argv: [...(first === undefined ? [ours.entrypoint] : command), ...args],
      };
    }
    if (program?.kind === 'server') return { kind: 'stand-in' };
    if (program?.kind === 'file') {
      const { path } = program;
      const isNamed = first === undefined || basename(first) === basename(path);
      return {
        kind: 'command',
        argv: isNamed ? [path, ...command.slice(1), ...args] : [...command, ...args],
      };
    }
    if (first !== undefined) return { kind: 'command', argv: [...command, ...args] };
    if (program?.kind !== 'commands') return { kind: 'stand-in' };
    return { kind: 'command', argv: [...program.entrypoint, ...(args.length > 0 ? args : program.cmd)] };
  }
}

/**
 * The ports of the built-in server that stands in for a container: those of its Pod that another container has are left
 * out. Each once: two containers may declare one, and so may one container by two names.
 */
export function standInPorts({ spec }: Pod, container: Container): readonly DeclaredPort[] {
  // On a node, all Pods of an image want one port: the first one has it.
  const portsOf = (each: Container): readonly DeclaredPort[] =>
    declaredOrExposed(each).map((port) =>
      spec.hostNetwork === true && (each.ports ?? []).length === 0 ? { ...port, isOptional: true } : port,
    );
  const all = [...(spec.initContainers ?? []).filter(isSidecar), ...(spec.containers ?? [])];
  const before = all.slice(
    0,
    all.findIndex(({ name }) => name === container.name),
  );
  const taken = new Set(before.flatMap(portsOf).map(keyOf));
  const ports = new Map(portsOf(container).map((port) => [keyOf(port), port]));
  return [...ports].filter(([key]) => !taken.has(key)).map(([, port]) => port);
}

function keyOf({ protocol, port }: DeclaredPort): string {
  return `${protocol} ${port}`;
}

function declaredOrExposed(container: Container): readonly DeclaredPort[] {
  const port = (container.ports ?? []).length > 0 ? undefined : exposedPort(container.image ?? '');
  return port === undefined ? declaredPorts(container) : [{ protocol: 'TCP', port }];
}

function declaredPorts({ ports = [] }: Container): readonly DeclaredPort[] {
  return ports.flatMap(({ containerPort: port, protocol = 'TCP' }) =>
    protocol === 'TCP' || protocol === 'UDP' ? [{ protocol, port }] : [],
  );
}

/**
 * Whether a probe can ask the server: by HTTP or TCP, on a port that is declared. Others are about programs that are not
 * there.
 */
export function canBeAsked(container: Container, { httpGet, tcpSocket }: Probe): boolean {
  const port = httpGet?.port ?? tcpSocket?.port;
  if (port === undefined || httpGet?.scheme === 'HTTPS') return false;
  return (container.ports ?? []).some(
    ({ name, containerPort, protocol = 'TCP' }) =>
      protocol === 'TCP' && (port === containerPort || port === name),
  );
}
