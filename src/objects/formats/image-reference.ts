/** Names of container images, as github.com/distribution/reference reads them. */

/** An image by its parts. Of tag and digest, neither need be written. */
export interface ImageReference {
  /** With the registry that is meant where none is named: `docker.io/library/nginx`. */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const label = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const host = String.raw`(?:${label}(?:\.${label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`;
const tagged = String.raw`(?::(\w[\w.-]{0,127}))?`;
const digested = '(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?';
const reference = new RegExp(`^(${host}/${component}(?:/${component})*)${tagged}${digested}$`);

const dockerHub = 'docker.io';
const maxPathLength = 255;

/** Reads the name of an image. @returns what is wrong with it, where it is none (`ParseNormalizedNamed`). */
export function parseImage(image: string): ImageReference | string {
  if (/^[a-f0-9]{64}$/.test(image)) {
    return `invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`;
  }
  const { registry, path } = splitRegistry(image);
  const [name = ''] = path.split(':');
  if (name.toLowerCase() !== name) {
    return `invalid reference format: repository name (${name}) must be lowercase`;
  }
  const [, repository, tag, digest] = reference.exec(`${registry}/${path}`) ?? [];
  if (repository === undefined) return 'invalid reference format';
  if (repository.length - registry.length - 1 > maxPathLength) {
    return `repository name must not be more than ${maxPathLength} characters`;
  }
  return { repository, tag, digest };
}

/** `splitDockerDomain`: the first name is a registry where it looks like a host. */
function splitRegistry(image: string): { readonly registry: string; readonly path: string } {
  const slash = image.indexOf('/');
  const first = image.slice(0, Math.max(0, slash));
  const isHost = first === 'localhost' || /[.:]/.test(first) || first.toLowerCase() !== first;
  const registry = isHost && first !== `index.${dockerHub}` ? first : dockerHub;
  const path = isHost ? image.slice(slash + 1) : image;
  return { registry, path: registry === dockerHub && !path.includes('/') ? `library/${path}` : path };
}
