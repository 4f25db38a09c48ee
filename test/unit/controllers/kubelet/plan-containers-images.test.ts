import { describe, expect, it } from 'vitest';
import { imageProblem } from '../../../../src/controllers/kubelet/plan-containers.ts';
import { pod } from '../workloads/samples.ts';

const nothing: ReadonlySet<string> = new Set();

describe('imageProblem', () => {
  const annotated = pod('p');
  annotated.metadata.annotations = { 'servicenet.dev/missing-images': 'shop/cart:2, other' };
  const notFound = (full: string): string =>
    `rpc error: code = NotFound desc = failed to pull and unpack image "${full}": failed to resolve reference "${full}": ${full}: not found`;

  it.each([
    ['nginx', undefined],
    ['shop/cart:2', notFound('docker.io/shop/cart:2')],
    ['other', notFound('docker.io/library/other:latest')],
    ['nginx:nosuch-1', notFound('docker.io/library/nginx:nosuch-1')],
    ['listed', notFound('docker.io/library/listed:latest')],
  ])('%s', (image, message) => {
    const found = imageProblem(annotated, { image }, new Set(['listed']));
    expect(found).toEqual(message === undefined ? undefined : { reason: 'ErrImagePull', message });
  });

  it('names what is no image, whatever the policy is, and what is never pulled', () => {
    for (const imagePullPolicy of ['Never', 'Always']) {
      expect(imageProblem(pod('p'), { image: 'MyApp', imagePullPolicy }, nothing)).toEqual({
        reason: 'InvalidImageName',
        message:
          'Failed to apply default image tag "MyApp": couldn\'t parse image name "MyApp": invalid reference format: repository name (library/MyApp) must be lowercase',
      });
    }
    expect(imageProblem(pod('p'), { image: 'a:nosuch', imagePullPolicy: 'Never' }, nothing)).toEqual({
      reason: 'ErrImageNeverPull',
      message: 'Container image "a:nosuch" is not present with pull policy of Never',
    });
  });
});
