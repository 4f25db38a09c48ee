import { type ImageReference, parseImage } from '../../objects/image-reference.ts';
import type { Container, Pod } from '../../objects/types/core.generated.ts';

/** Why an image cannot be had; of one that its registry does not have, what the runtime says. */
export interface ImageProblem {
  readonly reason: 'InvalidImageName' | 'ErrImageNeverPull' | 'ErrImagePull';
  readonly message: string;
}

/**
 * Looks for the image of a container (pkg/kubelet/images/image_manager.go): all can be had but those that are no images, and
 * those that are said to be missing.
 *
 * @param missing images that no registry has.
 */
export function imageProblem(
  pod: Pod,
  { image = '', imagePullPolicy }: Pick<Container, 'image' | 'imagePullPolicy'>,
  missing: ReadonlySet<string>,
): ImageProblem | undefined {
  if (image === '') return undefined;
  const parsed = parseImage(image);
  if (typeof parsed === 'string') {
    const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": ${parsed}`;
    return { reason: 'InvalidImageName', message };
  }
  if (!missing.has(image) && !isMissing(pod, image)) return undefined;
  if (imagePullPolicy === 'Never') {
    const message = `Container image "${image}" is not present with pull policy of Never`;
    return { reason: 'ErrImageNeverPull', message };
  }
  return { reason: 'ErrImagePull', message: pullFailure(parsed) };
}

const missingImagesAnnotation = 'servicenet.dev/missing-images';

/** Whether no registry has an image: its tag begins with `nosuch`, or an annotation of the Pod names it. */
function isMissing({ metadata }: Pod, image: string): boolean {
  const named = metadata.annotations?.[missingImagesAnnotation]?.split(',') ?? [];
  return /:nosuch[\w.-]*$/.test(image) || named.some((each) => each.trim() === image);
}

/** What containerd says of an image that its registry does not have. */
function pullFailure({ repository, tag, digest }: ImageReference): string {
  const version = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  const full = `${repository}${version}`;
  const resolving = `failed to resolve reference "${full}": ${full}: not found`;
  return `rpc error: code = NotFound desc = failed to pull and unpack image "${full}": ${resolving}`;
}
