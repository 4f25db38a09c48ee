/** Always for the tag `latest`, the default of an image without tag and digest. */
export function defaultPullPolicy(image: string): 'Always' | 'IfNotPresent' {
  const digest = image.indexOf('@');
  const name = digest === -1 ? image : image.slice(0, digest);
  const tag = /:([^:/]+)$/.exec(name)?.[1] ?? (digest === -1 && isReference(name) ? 'latest' : '');
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}

/** True for an image reference that can be parsed: repositories are lower-case. */
function isReference(name: string): boolean {
  const path = name.slice(name.indexOf('/') + 1);
  return /^[a-z0-9][a-z0-9._/-]*$/.test(path);
}
