import { isBuilt, program } from '../../cluster/programs.ts';

/**
 * Kubernetes' own agnhost, for tests of what the built-in one has not: an image that `up` is given by
 * `images: [...realAgnhost.images]`. Nothing is built here.
 */
const image = 'registry.k8s.io/e2e-test-images/agnhost:built';
const isThere = isBuilt('agnhost');

export const realAgnhost = {
  image,
  /** What is missing for it; empty: nothing. */
  missing: isThere ? '' : 'agnhost, which npm run test:upstream builds',
  images: isThere ? [`${image}=${program('agnhost')}`] : [],
};
