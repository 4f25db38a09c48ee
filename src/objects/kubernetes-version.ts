/** The version of Kubernetes whose behaviour is ours, with its default feature gates. */
export const kubernetesVersion = { major: '1', minor: '37', patch: '2' } as const;

const { major, minor, patch } = kubernetesVersion;

/** As in `1.37`. */
export const minorVersion = `${major}.${minor}`;

/** As in `v1.37.2`. */
export const fullVersion = `v${minorVersion}.${patch}`;
