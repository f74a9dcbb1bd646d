import { Frame } from './frame'
import { ShareButton } from './share'

// The button that shares the wall, for a page that stands outside the frame of
// antd; it comes with the dialog once somebody is there who may share.
export default function FramedShare() {
  return <Frame><ShareButton path="/v1/wall/shares" /></Frame>
}
